// The [[access]] tables of the configuration: the rights of users to files.
#ifndef H5MIRROR_SERVER_SETTINGS_ACCESS_RULES_H_
#define H5MIRROR_SERVER_SETTINGS_ACCESS_RULES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/settings/caller_set.h"
#include "server/settings/rights.h"

namespace h5mirror::server {

struct Setting;

// Stands in `files` for the name of the caller.
inline constexpr std::string_view kUserInGlob = "${user}";

struct AccessRule {
  std::vector<std::string> files;  // globs of names under the root (base/glob.h)
  // The owners whose files the rule takes (OwnerIs()). Empty: files of all owners, and files
  // without one.
  std::vector<std::string> owners = {};
  // The callers that it is for (CallerSet).
  std::vector<std::string> users;
  std::vector<std::string> groups;
  Rights allow;        // none: it denies
  std::string source;  // "/etc/h5mirror/h5mirrord.toml:12"

  CallerSet callers() const { return {users, groups}; }
  bool is_for_all() const { return callers().is_for_all(); }
};

// Whether `owner` ("unix:anna"; empty: nobody) is the one that a table names: "anna" of any kind,
// "unix:anna", or "${user}", which is `caller` ("unix:anna"; empty: it can own nothing).
bool OwnerIs(std::string_view named, std::string_view owner, std::string_view caller);

// OK: `owner` is of a kind that a caller can be, "unix:anna", or empty. kInvalidArgument names the
// kinds.
absl::Status CheckKindOfOwner(std::string_view owner);

// The rule of one [[access]] table. kInvalidArgument names its source, key and value.
absl::StatusOr<AccessRule> MakeAccessRule(const Setting& table);

// The rule as a table of the configuration.
std::string Describe(const AccessRule& rule);

// Tables that never decide, because an earlier one takes all their callers and files: one sentence
// for each, with both sources. Not all such tables are found: only where a glob is the same or ends
// in "**".
std::vector<std::string> FindUnreachable(absl::Span<const AccessRule> rules);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_ACCESS_RULES_H_
