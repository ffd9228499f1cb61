#include "base/toml_file.h"

#include <cerrno>
#include <fstream>
#include <sstream>

#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror {
namespace {

absl::StatusOr<std::string> ReadText(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream stream(path);
  if (!stream) return ErrnoToStatus(errno == 0 ? EIO : errno, StrCat("open ", path.string()));
  std::ostringstream text;
  text << stream.rdbuf();
  if (stream.bad()) return ErrnoToStatus(EIO, StrCat("read ", path.string()));
  return text.str();
}

}  // namespace

absl::StatusOr<toml::table> ParseTomlText(const std::string& text,
                                          const std::filesystem::path& path) {
  try {
    return ParseToml(text, path.string());
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(
        StrCat(path.string(), ":", error.source().begin.line, ": ", error.description()));
  }
}

absl::StatusOr<toml::table> ReadTomlFile(const std::filesystem::path& path) {
  H5M_ASSIGN_OR_RETURN(const std::string text, ReadText(path));
  return ParseTomlText(text, path);
}

}  // namespace h5mirror
