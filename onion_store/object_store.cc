#include "onion_store/object_store.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "base/strings.h"

namespace h5mirror::store {
namespace {

bool IsAllowed(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
}

// A part between two '/'.
bool IsGoodPart(std::string_view part) {
  return !part.empty() && part != "." && part != ".." && !part.ends_with(".new") &&
         std::all_of(part.begin(), part.end(), IsAllowed);
}

bool IsGoodName(std::string_view name) {
  if (name.size() > kObjectNameBytesMax) return false;
  for (size_t from = 0;;) {
    const size_t end = std::min(name.find('/', from), name.size());
    if (!IsGoodPart(name.substr(from, end - from))) return false;
    if (end == name.size()) return true;
    from = end + 1;
  }
}

}  // namespace

absl::Status CheckObjectName(std::string_view name) {
  if (IsGoodName(name)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("'", name.substr(0, 80),
             "' is no name of an object: it has 1 to 512 letters, digits, '.', '_', '-' and '/'"));
}

}  // namespace h5mirror::store
