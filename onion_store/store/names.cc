// The allowed names of files and versions.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "onion_store/shared/new_name.h"
#include "onion_store/store.h"

namespace h5mirror::store {
namespace {

constexpr size_t kTagBytesMax = 100;
constexpr size_t kComponentBytesMax = 247;  // 255 less ".h5m" and the rest of a temporary name

absl::Status Refuse(std::string_view name, std::string_view why) {
  constexpr size_t kShownMax = 256;  // messages are bounded, and the reason comes last
  const std::string_view shown = name.substr(0, CharacterStart(name, kShownMax));
  const bool whole = shown.size() == name.size();
  return absl::InvalidArgumentError(StrCat("name '", shown, whole ? "': " : "...': ", why));
}

absl::Status CheckComponent(std::string_view name, std::string_view part) {
  if (part.empty()) return Refuse(name, "it is absolute or has an empty component");
  if (part == "." || part == "..") return Refuse(name, "'.' and '..' are not allowed");
  if (part.size() > kComponentBytesMax)
    return Refuse(name, "a component exceeds 247 bytes: choose a shorter name");
  if (part.ends_with(".h5m")) return Refuse(name, "names ending in .h5m are the store's own");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckName(std::string_view name) {
  if (name.empty()) return Refuse(name, "it is empty");
  if (name.size() > kNameBytesMax) return Refuse(name.substr(0, 64), "it exceeds 4096 bytes");
  for (size_t at = 0; at < name.size();) {
    const size_t length = CharacterBytes(name.substr(at));
    unsigned char first = static_cast<unsigned char>(name[at]);
    if (first < 0x20 || first == 0x7f) {
      return Refuse(Printable(name),
                    StrCat("byte ", at, " is a control character: choose another name"));
    }
    if (length == 0) return Refuse(Printable(name), StrCat("it is not UTF-8 from byte ", at));
    at += length;
  }
  if (name.starts_with(".h5mirror")) {
    return Refuse(name, "names starting with .h5mirror are the store's own");
  }
  for (size_t from = 0; from <= name.size();) {
    size_t slash = std::min(name.find('/', from), name.size());
    if (absl::Status bad = CheckComponent(name, name.substr(from, slash - from)); !bad.ok()) {
      return bad;
    }
    from = slash + 1;
  }
  return absl::OkStatus();
}

absl::Status CheckNewName(std::string_view name) {
  H5M_RETURN_IF_ERROR(CheckName(name));
  const auto levels = std::count(name.begin(), name.end(), '/') + 1;
  if (levels <= kNameLevelsMax) return absl::OkStatus();
  return Refuse(name, StrCat("it has ", levels, " levels of directories and file; at most ",
                             kNameLevelsMax, " are allowed"));
}

absl::Status CheckTag(std::string_view tag) {
  auto is_allowed = [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  };
  if (tag.empty() || tag.size() > kTagBytesMax ||
      !std::all_of(tag.begin(), tag.end(), is_allowed)) {
    return absl::InvalidArgumentError(
        StrCat("tag '", tag.substr(0, kTagBytesMax),
               "': 1 to 100 letters, digits, '.', '_' and '-' are allowed"));
  }
  if (std::all_of(tag.begin(), tag.end(), absl::ascii_isdigit)) {
    return absl::InvalidArgumentError(
        StrCat("tag '", tag, "' is a number: versions have those already"));
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::store
