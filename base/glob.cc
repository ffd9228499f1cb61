#include "base/glob.h"

#include <algorithm>

#include "base/strings.h"

namespace h5mirror {
namespace {

constexpr size_t kNone = std::string_view::npos;

// The index of the ']' that ends the class which begins after `at`; kNone: there is none. A ']'
// that comes first is a member of the class.
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

// Goes through pattern and name from left to right. Where they differ, the last star takes more of
// the name; if it cannot, the last "**" does. It never helps to change what earlier stars of the
// same kind took.
class Match {
 public:
  Match(std::string_view glob, std::string_view name) : glob_(glob), name_(name) {}

  bool Run() {
    while (g_ < glob_.size() || n_ < name_.size()) {
      if (!GoOn() && !StarTakesMore() && !DeepTakesMore()) return false;
    }
    return true;
  }

 private:
  // Advances by one element of the pattern.
  bool GoOn() {
    if (g_ == glob_.size()) return false;
    if (glob_.substr(g_, 2) == "**") return BeginDeep(), true;
    if (glob_[g_] == '*') return BeginStar(), true;
    return n_ < name_.size() && TakeOne(glob_, &g_, name_, &n_);
  }

  void BeginStar() {
    star_ = ++g_;
    star_end_ = n_;
  }

  void BeginDeep() {
    const bool starts = g_ == 0 || glob_[g_ - 1] == '/';
    g_ += 2;
    deep_by_directory_ = starts && g_ < glob_.size() && glob_[g_] == '/';
    if (deep_by_directory_) ++g_;
    deep_ = g_;
    deep_end_ = n_;
    star_ = kNone;
  }

  bool StarTakesMore() {
    if (star_ == kNone || star_end_ >= name_.size() || name_[star_end_] == '/') return false;
    g_ = star_;
    n_ = ++star_end_;
    return true;
  }

  bool DeepTakesMore() {
    if (deep_ == kNone || deep_end_ >= name_.size()) return false;
    if (deep_by_directory_) {
      const size_t slash = name_.find('/', deep_end_);
      if (slash == kNone) return false;
      deep_end_ = slash;
    }
    g_ = deep_;
    n_ = ++deep_end_;
    star_ = kNone;
    return true;
  }

  const std::string_view glob_, name_;
  size_t g_ = 0, n_ = 0;
  // For the last star of each kind: the index after it, and the end of the part of the name that it
  // has taken.
  size_t star_ = kNone, star_end_ = 0;
  size_t deep_ = kNone, deep_end_ = 0;
  bool deep_by_directory_ = false;
};

}  // namespace

bool GlobMatches(std::string_view glob, std::string_view name) { return Match(glob, name).Run(); }

bool AnyGlobMatches(const std::vector<std::string>& globs, std::string_view name) {
  return std::any_of(globs.begin(), globs.end(),
                     [name](const std::string& glob) { return GlobMatches(glob, name); });
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
      continue;  // An escaped character stands for itself.
    }
    if (glob[i] != '[') continue;
    i = EndOfClass(glob, i + 1);
    if (i == kNone) return wrong("a '[' has no ']'");
  }
  return absl::OkStatus();
}

}  // namespace h5mirror
