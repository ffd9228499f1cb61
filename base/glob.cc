#include "base/glob.h"

#include "base/strings.h"

namespace h5mirror {
namespace {

constexpr size_t kNone = std::string_view::npos;

// Where the ']' of the class that begins behind `at` is; kNone: nowhere. One that stands first is a
// member.
size_t EndOfClass(std::string_view glob, size_t at) {
  size_t first = at;
  if (first < glob.size() && (glob[first] == '!' || glob[first] == '^')) ++first;
  return glob.find(']', first + 1);
}

bool ClassHas(std::string_view members, char wanted) {
  const bool inverted = members[0] == '!' || members[0] == '^';
  if (inverted) members.remove_prefix(1);
  bool found = false;
  for (size_t i = 0; i < members.size(); ++i) {
    if (i + 2 < members.size() && members[i + 1] == '-') {
      found = found || (members[i] <= wanted && wanted <= members[i + 2]);
      i += 2;
    } else {
      found = found || members[i] == wanted;
    }
  }
  return found != inverted;
}

// Whether the element of `glob` at `*g`, which is no star, matches the character at `*n`; moves
// both behind it.
bool TakeOne(std::string_view glob, size_t* g, std::string_view name, size_t* n) {
  const char wanted = name[*n];
  switch (glob[*g]) {
    case '?':
      if (wanted == '/') return false;
      ++*g;
      do ++*n;
      while (*n < name.size() && (name[*n] & 0xc0) == 0x80);
      return true;
    case '[': {
      const size_t end = EndOfClass(glob, *g + 1);
      if (end == kNone || wanted == '/') return false;
      if (!ClassHas(glob.substr(*g + 1, end - *g - 1), wanted)) return false;
      *g = end + 1;
      ++*n;
      return true;
    }
    case '\\':
      if (*g + 1 < glob.size()) ++*g;
      [[fallthrough]];
    default:
      if (glob[*g] != wanted) return false;
      ++*g;
      ++*n;
      return true;
  }
}

}  // namespace

bool GlobMatches(std::string_view glob, std::string_view name) {
  size_t g = 0, n = 0;
  // Behind the last star of each kind, and how much of the name it has taken. A later star need
  // never give back what an earlier one of its kind took.
  size_t star = kNone, star_end = 0;
  size_t deep = kNone, deep_end = 0;
  bool deep_by_directory = false;
  while (g < glob.size() || n < name.size()) {
    if (g < glob.size()) {
      if (glob.substr(g, 2) == "**") {
        const bool starts = g == 0 || glob[g - 1] == '/';
        g += 2;
        deep_by_directory = starts && g < glob.size() && glob[g] == '/';
        if (deep_by_directory) ++g;
        deep = g;
        deep_end = n;
        star = kNone;
        continue;
      }
      if (glob[g] == '*') {
        star = ++g;
        star_end = n;
        continue;
      }
      if (n < name.size() && TakeOne(glob, &g, name, &n)) continue;
    }
    if (star != kNone && star_end < name.size() && name[star_end] != '/') {
      g = star;
      n = ++star_end;
      continue;
    }
    if (deep == kNone || deep_end >= name.size()) return false;
    if (deep_by_directory) {
      const size_t slash = name.find('/', deep_end);
      if (slash == kNone) return false;
      deep_end = slash;
    }
    g = deep;
    n = ++deep_end;
    star = kNone;
  }
  return true;
}

absl::Status CheckGlob(std::string_view glob) {
  const auto wrong = [glob](std::string_view why) {
    return absl::InvalidArgumentError(StrCat("'", glob, "' is no pattern: ", why));
  };
  if (glob.empty()) return wrong("it is empty; \"**\" matches all files");
  if (glob.size() > 4096) return wrong("it is longer than 4096 bytes");
  if (glob.front() == '/' || glob.back() == '/') {
    return wrong("names are relative to the root and do not end in '/', as in \"runs/**\"");
  }
  for (size_t i = 0; i < glob.size(); ++i) {
    if (glob[i] == '\\') {
      if (++i == glob.size()) return wrong("it ends in '\\'");
      continue;  // Whatever is escaped stands for itself.
    }
    if (glob[i] != '[') continue;
    i = EndOfClass(glob, i + 1);
    if (i == kNone) return wrong("a '[' has no ']'");
  }
  return absl::OkStatus();
}

}  // namespace h5mirror
