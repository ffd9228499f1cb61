// Rules for the versions that the server drops by itself: by path, from the [[retention]] tables of
// its configuration.
#ifndef H5MIRROR_SERVER_SETTINGS_RETENTION_RULES_H_
#define H5MIRROR_SERVER_SETTINGS_RETENTION_RULES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "onion_store/retention.h"

namespace h5mirror::server {

struct RetentionRule {
  std::vector<std::string> files;  // globs of names under the root (base/glob.h)
  store::RetentionPolicy policy;   // empty: it drops no version
  uint64_t history_max_bytes = 0;  // of one file; 0: no limit
  bool keep_all = false;           // min_free drops nothing of these files, either
  std::string source;              // "/etc/h5mirror/h5mirrord.toml:12"

  bool Matches(std::string_view name) const;
  // For logs and notices: `"runs/**" (h5mirrord.toml:12)`.
  std::string Label() const;
};

// The first rule that matches `name`; nullptr: none.
const RetentionRule* FindRule(absl::Span<const RetentionRule> rules, std::string_view name);

// The rule as a table of the configuration.
std::string Describe(const RetentionRule& rule);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_RETENTION_RULES_H_
