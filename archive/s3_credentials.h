// Who calls an S3 service: keys from a file, or from the environment. They are in no message.
#ifndef H5MIRROR_ARCHIVE_S3_CREDENTIALS_H_
#define H5MIRROR_ARCHIVE_S3_CREDENTIALS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace h5mirror::archive {

struct S3Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // empty: the keys are lasting ones
  bool operator==(const S3Credentials&) const = default;
};

// The section [default] of a file in the form of ~/.aws/credentials. `source` is for messages.
// kInvalidArgument: a key is missing, or has a character that no key has; the message names the
// line, not its text.
absl::StatusOr<S3Credentials> ParseS3Credentials(std::string_view text, std::string_view source);

// Reads `file`, or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN where it is
// empty. Errors: kPermissionDenied    `file` may be read by others, or is another user's.
//         kFailedPrecondition  a variable is not set.
//         kInvalidArgument     as above.
//         those of reading the file.
absl::StatusOr<S3Credentials> LoadS3Credentials(const std::string& file);

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_S3_CREDENTIALS_H_
