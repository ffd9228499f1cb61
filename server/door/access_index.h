// Finds the [[access]] table that decides about a caller and a file. A configuration may have
// thousands of tables, and each call needs an answer.
//
// A trie of directories: a table hangs at the longest directory that its glob begins with. The
// nodes along the path of a name have all tables that may match it. Each node keeps them by the
// callers that they take.
#ifndef H5MIRROR_SERVER_DOOR_ACCESS_INDEX_H_
#define H5MIRROR_SERVER_DOOR_ACCESS_INDEX_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "server/settings/access_rules.h"

namespace h5mirror::server {

// A caller, as tables name one.
struct AccessSubject {
  std::string_view name;    // "anna"; empty: a caller without a name
  std::string_view issuer;  // "unix", "token"
  const std::vector<std::string>& groups;
};

// The subject as the owner of a file, "unix:anna"; a user of munge counts as a user of this host.
// Empty: the subject cannot own files. It has no name, or one that store::CheckOwner() refuses.
std::string OwnerName(std::string_view issuer, std::string_view name);

// Whether the glob may match a name below `directory` ("d/e"; empty: the root). True may be wrong.
bool MayMatchBelow(std::string_view glob, std::string_view directory);

// Immutable, so thread-safe.
class AccessIndex {
 public:
  explicit AccessIndex(std::vector<AccessRule> rules);

  bool empty() const { return rules_.empty(); }
  const std::vector<AccessRule>& rules() const { return rules_; }

  // Whether a rule names an owner.
  bool has_owners() const { return has_owners_; }

  // Returns the owner of the file, "unix:anna"; empty: nobody. A missing file is its caller's own.
  using AskOwner = absl::FunctionRef<absl::StatusOr<std::string>()>;
  // The first rule for that caller and file; nullptr: none, so nothing is allowed. `ask` is called
  // once if a rule with an owner could be the first; else not at all. Errors: those of `ask`.
  absl::StatusOr<const AccessRule*> Find(const AccessSubject& subject, std::string_view file,
                                         AskOwner ask) const;

  // The first rule for that caller that takes every name: one of its globs is "**", and it names no
  // owner. nullptr: there is none. Earlier rules may give or take single files.
  const AccessRule* FindForAll(const AccessSubject& subject) const;

  // Whether a rule that allows something takes the caller, and may take a file below `directory`
  // (empty: the root). True may be wrong, as for a rule with an owner; false is not.
  bool MayBelow(const AccessSubject& subject, std::string_view directory) const;

 private:
  // One glob of a rule. In each list in the order of the rules.
  struct Candidate {
    size_t rule;
    std::string glob;
    bool names_user;   // has ${user}
    bool names_owner;  // the rule is for files of some owners only
  };
  using Candidates = std::vector<Candidate>;
  struct Node {
    Candidates for_all;
    absl::flat_hash_map<std::string, Candidates> by_user;  // "anna", "unix:anna"
    absl::flat_hash_map<std::string, Candidates> by_group;
    absl::flat_hash_map<std::string, std::unique_ptr<Node>> children;
  };
  struct Search;

  void Add(size_t rule, const std::string& glob);
  void LookAt(const Node& node, Search& search) const;
  // All rules on the way to the file.
  void LookAtAll(Search& search) const;

  const std::vector<AccessRule> rules_;
  bool has_owners_ = false;
  Node root_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_ACCESS_INDEX_H_
