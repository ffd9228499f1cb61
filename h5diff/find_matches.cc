#include "h5diff/find_matches.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5diff/find_object.h"
#include "h5diff/object_diff.h"

namespace h5mirror::tools {
namespace {

// How many groups below the root a match can lie at most: each '/' of a pattern is one.
size_t DepthOf(const PathGlobs& globs) {
  size_t depth = 0;
  for (const std::string& pattern : globs.patterns()) {
    if (pattern.find("**") != std::string::npos) return SIZE_MAX;
    depth = std::max(depth, static_cast<size_t>(std::count(pattern.begin(), pattern.end(), '/')));
  }
  return depth;
}

absl::StatusOr<bool> HasAll(hid_t object, const std::vector<AttributeWish>& wishes) {
  for (const AttributeWish& wish : wishes) {
    const htri_t exists = H5Aexists(object, wish.name.c_str());
    H5M_RETURN_IF_ERROR(hdf5::Check(exists < 0 ? -1 : 0, "look for an attribute"));
    if (exists == 0) return false;
    if (!wish.value) continue;
    const auto text = ReadAttributeValue(object, wish.name);
    if (!text.ok() || !IsSameValue(*wish.value, *text)) return false;
  }
  return true;
}

class Finder {
 public:
  Finder(hid_t file, const PathGlobs& globs, const std::vector<AttributeWish>& wishes)
      : file_(file), globs_(globs), wishes_(wishes), depth_max_(DepthOf(globs)) {}

  absl::StatusOr<std::vector<Match>> Run() {
    H5M_ASSIGN_OR_RETURN(const FoundObject root, FindObject(file_, "/"));
    if (!root.object.has_value()) return absl::DataLossError("the file has no root group");
    Link to_root;
    to_root.address = root.object->address;
    waiting_.push_back({"", std::move(to_root), 0});
    while (!waiting_.empty()) {
      const Waiting next = std::move(waiting_.back());
      waiting_.pop_back();
      H5M_RETURN_IF_ERROR(Look(next));
    }
    return std::move(matches_);
  }

 private:
  struct Waiting {
    std::string path;  // "" is the root
    Link link;
    size_t depth = 0;
  };

  absl::Status Look(const Waiting& at) {
    const bool fits = globs_.Matches(at.path);
    if (at.link.type != H5L_TYPE_HARD) {
      if (fits && wishes_.empty()) {
        matches_.push_back({at.path, StrCat(LinkText(at.link.type), " to ", at.link.value)});
      }
      return absl::OkStatus();
    }
    H5M_ASSIGN_OR_RETURN(const OpenObject object,
                         OpenAt(file_, at.link.address, at.path.empty() ? "/" : at.path));
    if (fits) {
      H5M_ASSIGN_OR_RETURN(const bool wished, HasAll(object.id.get(), wishes_));
      if (wished) matches_.push_back({at.path, DescribeObject(object)});
    }
    if (object.kind != ObjectKind::kGroup || at.depth >= depth_max_ ||
        !groups_.insert(object.address).second) {
      return absl::OkStatus();
    }
    H5M_ASSIGN_OR_RETURN(std::vector<Link> links, ReadLinks(object.id.get()));
    // Backwards: the first one is taken next.
    for (auto link = links.rbegin(); link != links.rend(); ++link) {
      std::string path = StrCat(at.path, "/", link->name);
      waiting_.push_back({std::move(path), std::move(*link), at.depth + 1});
    }
    return absl::OkStatus();
  }

  const hid_t file_;
  const PathGlobs& globs_;
  const std::vector<AttributeWish>& wishes_;
  const size_t depth_max_;
  std::vector<Waiting> waiting_;
  std::set<uint64_t> groups_;
  std::vector<Match> matches_;
};

}  // namespace

absl::StatusOr<AttributeWish> ParseAttributeWish(std::string_view text) {
  const size_t equals = text.find('=');
  AttributeWish wish;
  wish.name = std::string(text.substr(0, equals));
  if (equals != std::string_view::npos) wish.value = std::string(text.substr(equals + 1));
  if (!wish.name.empty()) return wish;
  return absl::InvalidArgumentError(
      StrCat("'", text, "' names no attribute: write NAME or NAME=VALUE"));
}

bool IsSameValue(const std::string& wanted, const std::string& text) {
  double one = 0, other = 0;
  return wanted == text ||
         (absl::SimpleAtod(wanted, &one) && absl::SimpleAtod(text, &other) && one == other);
}

absl::StatusOr<std::vector<Match>> FindMatches(hid_t file, const PathGlobs& globs,
                                               const std::vector<AttributeWish>& wishes) {
  return Finder(file, globs, wishes).Run();
}

}  // namespace h5mirror::tools
