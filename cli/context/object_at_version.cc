#include "cli/context/object_at_version.h"

#include <filesystem>

#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/context/file_at_version.h"

namespace h5mirror::tools {
namespace {

constexpr std::string_view kPathMark = ":/";
constexpr char kForm[] = "write FILE@VERSION:/path/to/object";

absl::Status NoObject(std::string_view text) {
  return absl::InvalidArgumentError(StrCat("'", text, "' names no object: ", kForm));
}

}  // namespace

absl::StatusOr<std::string> PathInFile(std::string_view text) {
  if (!text.starts_with('/') || text.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        StrCat("'", text, "' is no path in an HDF5 file: begin with the root, /"));
  }
  std::string path;
  for (const absl::string_view part : absl::StrSplit(ToAbsl(text), '/')) {
    if (!part.empty() && part != ".") StrAppend(&path, "/", part);
  }
  return path.empty() ? "/" : path;
}

absl::StatusOr<ObjectAtVersion> ParseObjectAtVersion(std::string_view text, absl::TimeZone zone) {
  absl::Status why_not = NoObject(text);
  for (size_t at = text.find('@'); at != std::string_view::npos; at = text.find('@', at + 1)) {
    const size_t mark = text.find(kPathMark, at);
    if (at == 0 || mark == std::string_view::npos) continue;
    const auto version = ParseVersionSpec(text.substr(at + 1, mark - at - 1), zone);
    if (!version.ok()) {
      why_not = version.status();
      continue;
    }
    ObjectAtVersion result;
    result.file_at_version = std::string(text.substr(0, mark));
    H5M_ASSIGN_OR_RETURN(result.path, PathInFile(text.substr(mark + 1)));
    return result;
  }
  if (text.find('@') == std::string_view::npos) {
    return absl::InvalidArgumentError(StrCat("'", text, "' names no version: ", kForm));
  }
  return why_not;
}

std::optional<ObjectInFile> ParseObjectInFile(const std::string& text) {
  const size_t mark = text.find(kPathMark);
  if (mark == 0 || mark == std::string::npos) return std::nullopt;
  std::error_code error;
  if (std::filesystem::exists(text, error)) return std::nullopt;
  absl::StatusOr<std::string> path = PathInFile(std::string_view(text).substr(mark + 1));
  if (!path.ok()) return std::nullopt;
  return ObjectInFile{text.substr(0, mark), *std::move(path)};
}

}  // namespace h5mirror::tools
