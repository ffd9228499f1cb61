#include "server/door/access_index.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_replace.h"
#include "base/glob.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

// Such a name would not stand for itself in a glob.
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

struct AccessIndex::Search {
  const AccessSubject& subject;
  const std::string_view file;
  const bool may_stand_in_glob;
  const std::string qualified;  // "unix:anna"
  size_t best = std::numeric_limits<size_t>::max();

  void LookAt(const Candidates& candidates) {
    for (const Candidate& each : candidates) {
      if (each.rule >= best) return;
      if (Matches(each)) best = each.rule;
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

AccessIndex::AccessIndex(std::vector<AccessRule> rules) : rules_(std::move(rules)) {
  for (size_t i = 0; i < rules_.size(); ++i) {
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
  const Candidate candidate{rule, glob, glob.find(kUserInGlob) != std::string::npos};
  const AccessRule& its = rules_[rule];
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

const AccessRule* AccessIndex::Find(const AccessSubject& subject, std::string_view file) const {
  Search search{subject, file, MayStandInGlob(subject.name),
                StrCat(subject.issuer, ":", subject.name)};
  // Each directory may be a child by its name, and by ${user}: a name leads along several paths.
  std::vector<const Node*> nodes{&root_};
  std::string_view rest = file;
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
  return search.best < rules_.size() ? &rules_[search.best] : nullptr;
}

}  // namespace h5mirror::server
