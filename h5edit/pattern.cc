#include "h5edit/pattern.h"

#include <algorithm>
#include <cstddef>

#include "base/utf8.h"

namespace h5mirror::edit {

// The last '*' alone is ever tried again: what an earlier one takes more of, it could take as well.
bool IsMatch(std::string_view pattern, std::string_view name) {
  constexpr size_t kNone = std::string_view::npos;
  size_t at = 0, in_name = 0, star = kNone, star_in_name = 0;
  while (in_name < name.size()) {
    // Names may be no UTF-8: such a byte is a character, too.
    const size_t length = std::max<size_t>(CharacterBytes(name.substr(in_name)), 1);
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      star_in_name = in_name;
    } else if (at < pattern.size() && pattern[at] == '?') {
      ++at;
      in_name += length;
    } else if (at < pattern.size() && pattern[at] == name[in_name]) {
      ++at;
      ++in_name;
    } else if (star != kNone) {
      at = star + 1;
      in_name = ++star_in_name;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == kNone;
}

bool HasWildcards(std::string_view text) {
  return text.find_first_of("*?") != std::string_view::npos;
}

std::vector<std::string> ComponentsOf(std::string_view path) {
  std::vector<std::string> components;
  for (size_t begin = 0; begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) components.emplace_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return components;
}

}  // namespace h5mirror::edit
