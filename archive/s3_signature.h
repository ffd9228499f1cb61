// AWS Signature Version 4 of one HTTP request, with its headers.
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
#ifndef H5MIRROR_ARCHIVE_S3_SIGNATURE_H_
#define H5MIRROR_ARCHIVE_S3_SIGNATURE_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "archive/s3_credentials.h"

namespace h5mirror::archive {

// A request as it is signed.
struct S3Request {
  std::string method = "GET";
  std::string host;                               // with a port that is not the scheme's
  std::string path = "/";                         // not encoded
  std::map<std::string, std::string> query = {};  // not encoded
  // The headers that the signature does not add itself. Names in lower case.
  std::map<std::string, std::string> headers = {};
  std::string body_sha256;  // 64 hex digits
};

// The SHA-256 of no bytes.
inline constexpr char kEmptySha256[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// As AWS's UriEncode: all but letters, digits, '-', '.', '_' and '~' becomes "%XY". Characters of
// `kept` stay, too.
std::string UriEncode(std::string_view text, std::string_view kept = "");

// "/bucket/a%20b?list-type=2&prefix=x": path and query as they are signed, for the URL.
std::string TargetOf(const S3Request& request);

// All headers to send with `request` but Host, each as "name: value". They hold the signature:
// never log them.
std::vector<std::string> SignedHeaders(const S3Request& request, const S3Credentials& credentials,
                                       std::string_view region, absl::Time now);

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_S3_SIGNATURE_H_
