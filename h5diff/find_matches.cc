#include "h5diff/find_matches.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/numeric/int128.h"
#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5diff/find_object.h"
#include "h5diff/object_diff.h"

namespace h5mirror::tools {
namespace {

constexpr size_t kFailedMax = 100;
// Of a group's path. Each path is kept whole, so a file of nested groups would take the square of
// their number.
constexpr size_t kPathBytesMax = 16 << 10;

// How many groups below the root a match can lie at most: each '/' of a pattern is one.
size_t DepthOf(const PathGlobs& globs) {
  size_t depth = 0;
  for (const std::string& pattern : globs.patterns()) {
    if (pattern.find("**") != std::string::npos) return SIZE_MAX;
    depth = std::max(depth, static_cast<size_t>(std::count(pattern.begin(), pattern.end(), '/')));
  }
  return depth;
}

bool IsNumber(hid_t object, const std::string& attribute) {
  const hdf5::Handle opened(H5Aopen(object, attribute.c_str(), H5P_DEFAULT));
  const hdf5::Handle type(H5Aget_type(opened.get()));
  const H5T_class_t kind = H5Tget_class(type.get());
  return kind == H5T_INTEGER || kind == H5T_FLOAT;
}

absl::StatusOr<bool> HasAll(hid_t object, const std::vector<AttributeWish>& wishes) {
  for (const AttributeWish& wish : wishes) {
    const htri_t exists = H5Aexists(object, wish.name.c_str());
    H5M_RETURN_IF_ERROR(hdf5::Check(exists < 0 ? -1 : 0, "look for an attribute"));
    if (exists == 0) return false;
    if (!wish.value) continue;
    const auto text = ReadAttributeValue(object, wish.name);
    if (!text.ok()) return false;
    if (*text != *wish.value &&
        !(IsNumber(object, wish.name) && IsSameNumber(*wish.value, *text))) {
      return false;
    }
  }
  return true;
}

class Finder {
 public:
  Finder(hid_t file, const PathGlobs& globs, const std::vector<AttributeWish>& wishes)
      : file_(file), globs_(globs), wishes_(wishes), depth_max_(DepthOf(globs)) {}

  absl::StatusOr<Matches> Run() {
    H5M_ASSIGN_OR_RETURN(const FoundObject root, FindObject(file_, "/"));
    if (!root.object.has_value()) return absl::DataLossError("the file has no root group");
    Link to_root;
    to_root.address = root.object->address;
    waiting_.push_back({"", std::move(to_root), 0});
    while (!waiting_.empty()) {
      const Waiting next = std::move(waiting_.back());
      waiting_.pop_back();
      if (const absl::Status looked = Look(next);
          !looked.ok() && matches_.failed.size() < kFailedMax) {
        matches_.failed.push_back(StrCat(next.path, ": ", ToStd(looked.message())));
      }
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
    const bool leads_on = at.depth < depth_max_ && globs_.MayLeadOn(at.path);
    if (!fits && !leads_on) return absl::OkStatus();
    if (at.link.type != H5L_TYPE_HARD) {
      if (fits && wishes_.empty()) {
        matches_.found.push_back({at.path, StrCat(LinkText(at.link.type), " to ", at.link.value)});
      }
      return absl::OkStatus();
    }
    H5M_ASSIGN_OR_RETURN(const OpenObject object,
                         OpenAt(file_, at.link.address, at.path.empty() ? "/" : at.path));
    if (fits) {
      H5M_ASSIGN_OR_RETURN(const bool wished, HasAll(object.id.get(), wishes_));
      if (wished) matches_.found.push_back({at.path, DescribeObject(object)});
    }
    if (object.kind != ObjectKind::kGroup || !leads_on) return absl::OkStatus();
    return LeadOn(at, object);
  }

  // The members of a group are looked at next.
  absl::Status LeadOn(const Waiting& at, const OpenObject& object) {
    // Only so far from the root do two names of a group lead to the same matches.
    const size_t depth = depth_max_ == SIZE_MAX ? 0 : at.depth;
    if (!groups_.insert({object.address, depth}).second) return absl::OkStatus();
    if (at.path.size() > kPathBytesMax) return absl::ResourceExhaustedError("nested too deep");
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
  std::set<std::pair<uint64_t, size_t>> groups_;
  Matches matches_;
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

bool IsSameNumber(const std::string& one, const std::string& other) {
  absl::int128 whole = 0, other_whole = 0;
  if (absl::SimpleAtoi(one, &whole) && absl::SimpleAtoi(other, &other_whole)) {
    return whole == other_whole;
  }
  double number = 0, other_number = 0;
  return absl::SimpleAtod(one, &number) && absl::SimpleAtod(other, &other_number) &&
         number == other_number;
}

absl::StatusOr<Matches> FindMatches(hid_t file, const PathGlobs& globs,
                                    const std::vector<AttributeWish>& wishes) {
  return Finder(file, globs, wishes).Run();
}

}  // namespace h5mirror::tools
