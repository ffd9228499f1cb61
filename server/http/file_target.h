// The file and the version that the path of a request names: "run7.h5@tag:raw".
#ifndef H5MIRROR_SERVER_HTTP_FILE_TARGET_H_
#define H5MIRROR_SERVER_HTTP_FILE_TARGET_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "rpc/version_spec.h"

namespace h5mirror::server {

// `text` with each "%41" replaced by its byte (RFC 3986, 2.1). kInvalidArgument: a '%' without two
// hexadecimal digits behind it.
absl::StatusOr<std::string> DecodePercent(std::string_view text);

struct FileTarget {
  std::string name;                         // as store::CheckName() allows it
  std::optional<rpc::VersionSpec> version;  // nullopt: the newest state, also of an open file
};

// `path` is the part after "/f/", as the client has sent it. The last '@' that is not encoded
// stands before the version; a name has "%40" for its own. Times are of UTC where they name no
// zone. kInvalidArgument: a bad version, or a name that no file has.
absl::StatusOr<FileTarget> ParseFileTarget(std::string_view path);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_FILE_TARGET_H_
