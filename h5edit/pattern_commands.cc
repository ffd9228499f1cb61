// DELETE with wildcards.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/ddl.h"
#include "h5edit/executor.h"
#include "h5edit/pattern.h"

namespace h5mirror::edit {

using hdf5::Check;
using hdf5::Handle;

namespace {

constexpr std::string_view kAnyDepth = "**";

struct Child {
  std::string name;
  bool is_hard = false;
};

herr_t NoteLink(hid_t, const char* name, const H5L_info2_t* info, void* children) {
  static_cast<std::vector<Child>*>(children)->push_back({name, info->type == H5L_TYPE_HARD});
  return 0;
}

herr_t NoteAttribute(hid_t, const char* name, const H5A_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->push_back(name);
  return 0;
}

absl::StatusOr<std::vector<Child>> ChildrenOf(hid_t object, const std::string& path) {
  std::vector<Child> children;
  if (H5Iget_type(object) != H5I_GROUP) return children;
  H5M_RETURN_IF_ERROR(
      Check(H5Literate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, NoteLink, &children),
            StrCat("look at ", path)));
  return children;
}

std::string Below(const std::string& path, const std::string& name) {
  return path == "/" ? path + name : StrCat(path, "/", name);
}

// Finds the objects that a pattern is of. Each is met once, however many paths lead to it.
class Walk {
 public:
  Walk(hid_t access, std::vector<std::string> components)
      : access_(access), components_(std::move(components)) {}

  // From `object` on, which has the components before `next`.
  absl::Status From(hid_t object, const std::string& path, size_t next) {
    H5O_info2_t info;
    H5M_RETURN_IF_ERROR(
        Check(H5Oget_info3(object, &info, H5O_INFO_BASIC), StrCat("look at ", path)));
    const std::string token(reinterpret_cast<const char*>(&info.token), sizeof info.token);
    if (!met_.insert({info.fileno, token, next}).second) return absl::OkStatus();
    if (next == components_.size()) {
      found_.push_back(path);
      return absl::OkStatus();
    }
    const std::string& component = components_[next];
    if (component == kAnyDepth) {
      H5M_RETURN_IF_ERROR(From(object, path, next + 1));
      return Into(object, path, "*", next);
    }
    if (HasWildcards(component)) return Into(object, path, component, next + 1);
    // Without wildcards it is a path like any other: all kinds of links are followed.
    const Handle child(H5Iget_type(object) == H5I_GROUP
                           ? H5Oopen(object, component.c_str(), access_)
                           : H5I_INVALID_HID);
    if (child.valid()) return From(child.get(), Below(path, component), next + 1);
    H5Eclear2(H5E_DEFAULT);
    return absl::OkStatus();
  }

  const std::vector<std::string>& found() const { return found_; }

 private:
  absl::Status Into(hid_t group, const std::string& path, std::string_view pattern, size_t next) {
    H5M_ASSIGN_OR_RETURN(const std::vector<Child> children, ChildrenOf(group, path));
    for (const Child& child : children) {
      if (!child.is_hard || !IsMatch(pattern, child.name)) continue;
      H5M_ASSIGN_OR_RETURN(const Handle object,
                           hdf5::Own(H5Oopen(group, child.name.c_str(), access_),
                                     StrCat("open ", Below(path, child.name))));
      H5M_RETURN_IF_ERROR(From(object.get(), Below(path, child.name), next));
    }
    return absl::OkStatus();
  }

  const hid_t access_;
  const std::vector<std::string> components_;
  std::set<std::tuple<unsigned long, std::string, size_t>> met_;
  std::vector<std::string> found_;
};

}  // namespace

absl::StatusOr<std::vector<Executor::Match>> Executor::FindMatches(const Statement& statement) {
  const Target& target = statement.target;
  const bool wants_links = statement.verb == Verb::kDeleteObject;
  const auto fits = [&target](const std::string& name) {
    return target.pattern == Target::Pattern::kQuoted ? name == target.attribute
                                                      : IsMatch(target.attribute, name);
  };
  Walk walk(access_.get(), ComponentsOf(target.object));
  H5M_ASSIGN_OR_RETURN(const Handle root, Open("/", target.object_at));
  H5M_RETURN_IF_ERROR(walk.From(root.get(), "/", 0));
  std::vector<Match> matches;
  for (const std::string& path : walk.found()) {
    H5M_ASSIGN_OR_RETURN(const Handle object, Open(path, target.object_at));
    const H5I_type_t kind = H5Iget_type(object.get());
    if (target.word == ObjectWord::kDataset && kind != H5I_DATASET) continue;
    if (target.word == ObjectWord::kGroup && kind != H5I_GROUP) continue;
    std::vector<std::string> names;
    if (wants_links) {
      H5M_ASSIGN_OR_RETURN(const std::vector<Child> children, ChildrenOf(object.get(), path));
      for (const Child& child : children) names.push_back(child.name);
    } else {
      H5M_RETURN_IF_ERROR(Check(
          H5Aiterate2(object.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, NoteAttribute, &names),
          StrCat("look at ", path)));
    }
    for (const std::string& name : names)
      if (fits(name)) matches.push_back({path, name});
    if (!matches.empty() && matches.back().object == path)
      H5M_RETURN_IF_ERROR(CheckIsOurs(object.get(), path, target.object_at));
  }
  return matches;
}

absl::Status Executor::DeleteMatches(const Statement& statement) {
  const Target& target = statement.target;
  const bool wants_links = statement.verb == Verb::kDeleteObject;
  H5M_ASSIGN_OR_RETURN(std::vector<Match> matches, FindMatches(statement));
  if (matches.empty() && !statement.if_exists) {
    return Fail(target.object_at,
                absl::NotFoundError(StrCat("no ", wants_links ? "object" : "attribute", " matches ",
                                           Below(target.object, target.attribute))));
  }
  // Deeper objects go first, while their paths still exist.
  std::stable_sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) {
    return ComponentsOf(a.object).size() > ComponentsOf(b.object).size();
  });
  for (const Match& match : matches) {
    H5M_ASSIGN_OR_RETURN(const Handle object, Open(match.object, target.object_at));
    const std::string what = StrCat("delete ", Below(match.object, match.name));
    const absl::Status deleted =
        wants_links ? Check(H5Ldelete(object.get(), match.name.c_str(), access_.get()), what)
                    : Check(H5Adelete(object.get(), match.name.c_str()), what);
    if (!deleted.ok()) return Fail(target.object_at, deleted);
  }
  return absl::OkStatus();
}

std::string Executor::TouchedMatches(const Statement& statement) {
  if (statement.verb == Verb::kDeleteObject) return {};
  const size_t reason_at = blame_;
  std::string text;
  for (const Match& match : FindMatches(statement).value_or(std::vector<Match>())) {
    const Handle object(H5Oopen(file_, match.object.c_str(), access_.get()));
    const auto ddl = AttributeDdl(object.get(), match.name);
    if (ddl.ok()) StrAppend(&text, match.object, ":\n", *ddl);
  }
  H5Eclear2(H5E_DEFAULT);
  blame_ = reason_at;
  return text;
}

}  // namespace h5mirror::edit
