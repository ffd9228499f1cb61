#include "server/door/access_index.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_replace.h"
#include "base/glob.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/store.h"

namespace h5mirror::server {
namespace {

// True: the name matches only itself in a glob.
bool MayStandInGlob(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of("*?[]\\/") == std::string_view::npos;
}

// Takes the first directory off; empty: there is none, only a last part.
std::string_view TakeDirectory(std::string_view& path) {
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view first = path.substr(0, slash);
  path.remove_prefix(slash + 1);
  return first;
}

}  // namespace

bool MayMatchBelow(std::string_view glob, std::string_view directory) {
  while (!directory.empty()) {
    const std::string_view part = TakeDirectory(glob);
    // The last part of a glob takes a file, unless it reaches over directories.
    if (part.empty()) return glob.find("**") != std::string_view::npos;
    // A '/' may lie within a [range]. Such globs are rare, and true costs only a further look.
    if (part.find("**") != std::string_view::npos || part.find('[') != std::string_view::npos) {
      return true;
    }
    const size_t slash = directory.find('/');
    if (!GlobMatches(part, directory.substr(0, slash))) return false;
    directory = slash == std::string_view::npos ? std::string_view() : directory.substr(slash + 1);
  }
  return true;
}

struct AccessIndex::Search {
  const AccessSubject& subject;
  const std::string_view file;
  const bool may_stand_in_glob;
  const std::string qualified;  // "unix:anna"
  size_t best = std::numeric_limits<size_t>::max();
  std::vector<size_t> of_owners = {};  // rules for the caller and the name, if the owner is theirs

  void LookAt(const Candidates& candidates) {
    for (const Candidate& each : candidates) {
      if (each.rule >= best) return;
      if (!Matches(each)) continue;
      if (each.names_owner) {
        of_owners.push_back(each.rule);
      } else {
        best = each.rule;
      }
    }
  }

  template <typename Key>
  void LookAt(const absl::flat_hash_map<std::string, Candidates>& by_key, const Key& key) {
    if (const auto found = by_key.find(key); found != by_key.end()) LookAt(found->second);
  }

 private:
  bool Matches(const Candidate& candidate) const {
    if (!candidate.names_user) return GlobMatches(candidate.glob, file);
    if (!may_stand_in_glob) return false;
    return GlobMatches(
        absl::StrReplaceAll(candidate.glob, {{ToAbsl(kUserInGlob), ToAbsl(subject.name)}}), file);
  }
};

std::string OwnerName(std::string_view issuer, std::string_view name) {
  if (name.empty() || issuer.empty()) return "";
  std::string owner = StrCat(issuer == "munge" ? std::string_view("unix") : issuer, ":", name);
  return store::CheckOwner(owner).ok() ? owner : std::string();
}

AccessIndex::AccessIndex(std::vector<AccessRule> rules) : rules_(std::move(rules)) {
  for (size_t i = 0; i < rules_.size(); ++i) {
    has_owners_ = has_owners_ || !rules_[i].owners.empty();
    for (const std::string& glob : rules_[i].files) Add(i, glob);
  }
}

void AccessIndex::Add(size_t rule, const std::string& glob) {
  Node* node = &root_;
  std::string_view rest = glob;
  for (;;) {
    std::string_view after = rest;
    const std::string_view directory = TakeDirectory(after);
    const bool is_plain =
        !directory.empty() && directory.find_first_of("*?[]\\") == std::string_view::npos &&
        (directory == kUserInGlob || directory.find(kUserInGlob) == std::string_view::npos);
    if (!is_plain) break;
    std::unique_ptr<Node>& child = node->children[std::string(directory)];
    if (child == nullptr) child = std::make_unique<Node>();
    node = child.get();
    rest = after;
  }
  const AccessRule& its = rules_[rule];
  const Candidate candidate{rule, glob, glob.find(kUserInGlob) != std::string::npos,
                            !its.owners.empty()};
  if (its.is_for_all()) node->for_all.push_back(candidate);
  for (const std::string& user : its.users) node->by_user[user].push_back(candidate);
  for (const std::string& group : its.groups) node->by_group[group].push_back(candidate);
}

void AccessIndex::LookAt(const Node& node, Search& search) const {
  search.LookAt(node.for_all);
  if (search.subject.name.empty()) return;
  if (!node.by_user.empty()) {
    search.LookAt(node.by_user, ToAbsl(search.subject.name));
    search.LookAt(node.by_user, search.qualified);
  }
  if (node.by_group.empty()) return;
  for (const std::string& group : search.subject.groups) search.LookAt(node.by_group, group);
}

absl::StatusOr<const AccessRule*> AccessIndex::Find(const AccessSubject& subject,
                                                    std::string_view file, AskOwner ask) const {
  Search search{subject, file, MayStandInGlob(subject.name),
                StrCat(subject.issuer, ":", subject.name)};
  LookAtAll(search);
  std::vector<size_t>& candidates = search.of_owners;
  std::erase_if(candidates, [&](size_t rule) { return rule >= search.best; });
  if (!candidates.empty()) {
    H5M_ASSIGN_OR_RETURN(const std::string owner, ask());
    const std::string caller = OwnerName(subject.issuer, subject.name);
    for (const size_t rule : candidates) {
      const std::vector<std::string>& named = rules_[rule].owners;
      const bool takes = std::any_of(named.begin(), named.end(), [&](const std::string& each) {
        return OwnerIs(each, owner, caller);
      });
      if (takes) search.best = std::min(search.best, rule);
    }
  }
  return search.best < rules_.size() ? &rules_[search.best] : nullptr;
}

const AccessRule* AccessIndex::FindForAll(const AccessSubject& subject) const {
  const auto found = std::find_if(rules_.begin(), rules_.end(), [&](const AccessRule& rule) {
    return rule.owners.empty() &&
           std::find(rule.files.begin(), rule.files.end(), "**") != rule.files.end() &&
           rule.callers().Takes(subject.name, subject.issuer, subject.groups);
  });
  return found == rules_.end() ? nullptr : &*found;
}

bool AccessIndex::MayBelow(const AccessSubject& subject, std::string_view directory) const {
  return std::any_of(rules_.begin(), rules_.end(), [&](const AccessRule& rule) {
    if (rule.allow.empty() || !rule.callers().Takes(subject.name, subject.issuer, subject.groups)) {
      return false;
    }
    return std::any_of(rule.files.begin(), rule.files.end(), [&](const std::string& glob) {
      const bool names_user = glob.find(kUserInGlob) != std::string::npos;
      if (!names_user) return MayMatchBelow(glob, directory);
      if (!MayStandInGlob(subject.name)) return false;
      return MayMatchBelow(absl::StrReplaceAll(glob, {{ToAbsl(kUserInGlob), ToAbsl(subject.name)}}),
                           directory);
    });
  });
}

void AccessIndex::LookAtAll(Search& search) const {
  const AccessSubject& subject = search.subject;
  // Each directory may be a child by its name, and by ${user}: a name leads along several paths.
  std::vector<const Node*> nodes{&root_};
  std::string_view rest = search.file;
  while (!nodes.empty()) {
    for (const Node* node : nodes) LookAt(*node, search);
    const std::string_view directory = TakeDirectory(rest);
    if (directory.empty()) break;
    std::vector<const Node*> next;
    for (const Node* node : nodes) {
      if (const auto child = node->children.find(ToAbsl(directory));
          child != node->children.end()) {
        next.push_back(child->second.get());
      }
      if (directory != subject.name) continue;
      if (const auto child = node->children.find(ToAbsl(kUserInGlob));
          child != node->children.end()) {
        next.push_back(child->second.get());
      }
    }
    nodes = std::move(next);
  }
}

}  // namespace h5mirror::server
