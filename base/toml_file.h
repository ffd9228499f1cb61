// The configuration files of our programs: TOML, read and parsed in one place.
#ifndef H5MIRROR_BASE_TOML_FILE_H_
#define H5MIRROR_BASE_TOML_FILE_H_

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "base/toml.h"

namespace h5mirror {

// Errors: kInvalidArgument  "PATH:LINE: ...": the text is not TOML.
absl::StatusOr<toml::table> ParseTomlText(const std::string& text,
                                          const std::filesystem::path& path);

// Errors: kInvalidArgument  as above; the others of ErrnoToStatus() name the path.
absl::StatusOr<toml::table> ReadTomlFile(const std::filesystem::path& path);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_TOML_FILE_H_
