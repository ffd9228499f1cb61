// Credentials of munge as a client's token: `token = "munge"`, or "munge:SOCKET" for another munged
// than the usual one of the host.
#ifndef H5MIRROR_RPC_MUNGE_TOKEN_H_
#define H5MIRROR_RPC_MUNGE_TOKEN_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace h5mirror::rpc {

// Whether a token, as it is configured, stands for credentials of munge.
bool IsMungeSource(std::string_view token);

// A credential is used for this long before the next one is made. munged's own time to live is 300
// s, and a site may have a shorter one.
inline constexpr absl::Duration kMungeRenewal = absl::Minutes(1);

// A new credential of this process's user, for the server at `target`: servers of one host share a
// munged, which decodes each credential once. Waits for munged, but at most `wait_max`: a thread of
// its own asks it, with all signals blocked, and goes on without us if munged hangs. At most 4 such
// threads run in a process. After an error munged is not asked again for 5 s. Works in a forked
// child.
// Errors: kFailedPrecondition  there is no libmunge; the message names the package.
//         kUnavailable         munged does not answer.
absl::StatusOr<std::string> MakeMungeToken(std::string_view source, const std::string& target,
                                           absl::Duration wait_max = absl::Seconds(5));

// The newest credential for `target` that MakeMungeToken() has made, or a newer one if that one is
// older than kMungeRenewal. Waits 200 ms for munged at most, for one call at a time. If munged does
// not answer, returns `given`, and does not ask again for 5 s. Must not be called in a child that
// was forked while another thread was in this function.
std::string CurrentMungeToken(std::string_view source, const std::string& target,
                              const std::string& given);

// True: CurrentMungeToken() gives another credential for `target` than `refused` from now on. Makes
// it if the newest is still that one, and waits as CurrentMungeToken() does. False: munged does not
// answer.
bool ReplaceMungeToken(std::string_view source, const std::string& target,
                       const std::string& refused);

// MakeMungeToken() with another maker, and without memory of the last answer; for tests.
using MakeCredential = absl::StatusOr<std::string> (*)(const std::string& socket);
absl::StatusOr<std::string> MakeMungeTokenBy(MakeCredential make, std::string_view source,
                                             absl::Duration wait_max);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_MUNGE_TOKEN_H_
