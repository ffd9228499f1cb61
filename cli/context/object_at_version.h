// FILE@VERSION:/path/to/object and FILE:/path/to/object on the command line.
#ifndef H5MIRROR_CLI_CONTEXT_OBJECT_AT_VERSION_H_
#define H5MIRROR_CLI_CONTEXT_OBJECT_AT_VERSION_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace h5mirror::tools {

struct ObjectAtVersion {
  std::string file_at_version;  // FILE@VERSION, for ConnectVersion()
  std::string path;             // as PathInFile() makes it
};

// The path begins at the first ":/" behind the version. A time has a ':' too, but no "/". A tag has
// none of ':', '@' and '/'. So the version lies between the first '@' and ":/" with a valid version
// between them; FILE and path may contain both marks. kInvalidArgument: there is no '@', no
// version, or no path behind it.
absl::StatusOr<ObjectAtVersion> ParseObjectAtVersion(std::string_view text, absl::TimeZone zone);

struct ObjectInFile {
  std::string file;
  std::string path;  // as PathInFile() makes it
};

// FILE:/path/to/object, where no version is named. The path begins at the first ":/". Unset: there
// is none, or all of `text` is the path of a local file.
std::optional<ObjectInFile> ParseObjectInFile(const std::string& text);

// A path from the root of an HDF5 file, "/g/d": without empty components and ".", as HDF5 reads it.
// kInvalidArgument: it does not begin with '/', or holds a zero byte.
absl::StatusOr<std::string> PathInFile(std::string_view text);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_CONTEXT_OBJECT_AT_VERSION_H_
