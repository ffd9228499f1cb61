#include "ceph/root_url.h"

#include <filesystem>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::ceph {
namespace {

constexpr std::string_view kScheme = "cephfs:";
constexpr std::string_view kForm =
    "must be cephfs:/PATH?conf=FILE&id=NAME&fs=NAME, of which only the path is needed";

absl::Status Refuse(std::string_view why) {
  return absl::InvalidArgumentError(StrCat(kForm, ": ", why));
}

absl::StatusOr<std::string> ParsePath(std::string_view text) {
  if (!text.starts_with("/")) return Refuse("the path does not begin with /");
  for (const std::filesystem::path& part : std::filesystem::path(text)) {
    if (part == "." || part == "..") return Refuse("the path has \".\" or \"..\"");
  }
  std::string path = std::filesystem::path(text).lexically_normal().string();
  while (path.size() > 1 && path.ends_with("/")) path.pop_back();
  return path;
}

absl::Status Take(std::string_view part, RootUrl* url) {
  const size_t equals = part.find('=');
  const std::string_view key = part.substr(0, equals);
  std::string* const field = key == "conf" ? &url->conf
                             : key == "id" ? &url->id
                             : key == "fs" ? &url->filesystem
                                           : nullptr;
  if (field == nullptr) return Refuse(StrCat("\"", key, "\" is not one of conf, id, fs"));
  if (equals == part.npos || equals + 1 == part.size()) {
    return Refuse(StrCat("\"", key, "\" has no value"));
  }
  if (!field->empty()) return Refuse(StrCat("\"", key, "\" is there twice"));
  *field = part.substr(equals + 1);
  return absl::OkStatus();
}

}  // namespace

bool IsRootUrl(std::string_view root) { return root.starts_with(kScheme); }

absl::StatusOr<RootUrl> ParseRootUrl(std::string_view root) {
  if (!IsRootUrl(root)) return Refuse("it does not begin with cephfs:");
  if (root.find('\0') != root.npos) return Refuse("it has a NUL byte");
  root.remove_prefix(kScheme.size());
  const size_t question = root.find('?');
  RootUrl url;
  H5M_ASSIGN_OR_RETURN(url.path, ParsePath(root.substr(0, question)));
  if (question == root.npos) return url;
  for (std::string_view rest = root.substr(question + 1);;) {
    const size_t end = rest.find('&');
    H5M_RETURN_IF_ERROR(Take(rest.substr(0, end), &url));
    if (end == rest.npos) break;
    rest.remove_prefix(end + 1);
  }
  // The server's working directory is no place that a configuration can mean.
  if (!url.conf.empty() && !url.conf.starts_with("/")) return Refuse("conf is no absolute path");
  return url;
}

std::string RootUrl::ToString() const {
  std::string text = StrCat(kScheme, path);
  char separator = '?';
  for (const auto& [key, value] :
       {std::pair("conf", &conf), std::pair("id", &id), std::pair("fs", &filesystem)}) {
    if (value->empty()) continue;
    StrAppend(&text, std::string(1, std::exchange(separator, '&')), key, "=", *value);
  }
  return text;
}

}  // namespace h5mirror::ceph
