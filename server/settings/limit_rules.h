// The [[limits]] tables of the configuration: bounds of one caller's use of a server that others
// use too.
#ifndef H5MIRROR_SERVER_SETTINGS_LIMIT_RULES_H_
#define H5MIRROR_SERVER_SETTINGS_LIMIT_RULES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/settings/caller_set.h"

namespace h5mirror::server {

struct Setting;

// For each of its callers by itself. A key that is not set limits nothing.
struct LimitRule {
  std::vector<std::string> users;
  std::vector<std::string> groups;
  std::optional<uint64_t> sessions = std::nullopt;   // of writers, at once
  std::optional<uint64_t> streams = std::nullopt;    // followers, waits and reads, at once
  std::optional<uint64_t> calls = std::nullopt;      // that begin in a second
  std::optional<uint64_t> bandwidth = std::nullopt;  // bytes of writers' messages in a second
  std::string source;                                // "/etc/h5mirror/h5mirrord.toml:12"

  CallerSet callers() const { return {users, groups}; }
};

// The rule of one [[limits]] table. kInvalidArgument names its source, key and value.
absl::StatusOr<LimitRule> MakeLimitRule(const Setting& table);

// The rules of the [[limits]] tables among `settings`. Errors: as MakeLimitRule().
absl::StatusOr<std::vector<LimitRule>> MakeLimitRules(absl::Span<const Setting> settings);

// The rule as a table of the configuration.
std::string Describe(const LimitRule& rule);

// Tables that never decide, as an earlier one takes all their callers: one sentence for each.
std::vector<std::string> FindUnreachable(absl::Span<const LimitRule> rules);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_LIMIT_RULES_H_
