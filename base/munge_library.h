// Credentials of munge: proofs of a uid that all hosts with the same key accept. The first use
// loads libmunge, so programs also run where it is not installed.
#ifndef H5MIRROR_BASE_MUNGE_LIBRARY_H_
#define H5MIRROR_BASE_MUNGE_LIBRARY_H_

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace h5mirror {

// The payload of our credentials. Those of other programs, such as Slurm, have another one.
inline constexpr std::string_view kMungePayload = "h5mirror";

// munged's answer to a valid credential.
struct MungeClaim {
  uid_t uid = 0;
  std::string payload = {};
  absl::Duration left = absl::ZeroDuration();  // until it expires
};

// Whether `text` has the form of a credential: "MUNGE:", base64 and ':'.
bool IsMungeCredential(std::string_view text);

// kFailedPrecondition: there is no libmunge on this machine; the message names the package.
absl::Status CheckMungeLibrary();

// Both functions ask the munged of this host through its `socket`; empty: libmunge's default.
// Thread-safe. If munged hangs, they block for 10 s and more: call them on a thread that no other
// waits for. Block SIGPIPE there. Messages never show a credential.
//
// A new credential of this process's user, with the payload above and munged's time to live.
// Errors: kFailedPrecondition  there is no libmunge.
//         kUnavailable         munged does not answer.
absl::StatusOr<std::string> EncodeMunge(const std::string& socket);

// Errors: as above;
//         kUnauthenticated     the credential is not valid: malformed, of another key, expired, or
//                              decoded before. Each munged decodes a credential once.
absl::StatusOr<MungeClaim> DecodeMunge(const std::string& socket, const std::string& credential);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_MUNGE_LIBRARY_H_
