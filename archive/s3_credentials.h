// The credentials of a caller of an S3 service: keys from a file, or from the environment. No
// message shows them.
#ifndef H5MIRROR_ARCHIVE_S3_CREDENTIALS_H_
#define H5MIRROR_ARCHIVE_S3_CREDENTIALS_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace h5mirror::archive {

struct S3Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // empty: the keys do not expire
  bool operator==(const S3Credentials&) const = default;
};

// The section [default] of a file in the form of ~/.aws/credentials. `source` is for messages.
// kInvalidArgument: a key is missing, or has a character that no key may have; the message names
// the line, but does not quote it.
absl::StatusOr<S3Credentials> ParseS3Credentials(std::string_view text, std::string_view source);

// Reads `file`. If `file` is empty: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.
// Errors: kPermissionDenied    `file` may be read by others, or is another user's.
//         kFailedPrecondition  a variable is not set.
//         kInvalidArgument     as above.
//         those of reading the file.
absl::StatusOr<S3Credentials> LoadS3Credentials(const std::string& file);

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_S3_CREDENTIALS_H_
