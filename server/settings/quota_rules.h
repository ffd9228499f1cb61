// The [[quota]] tables of the configuration: the space that the files below a directory may take.
#ifndef H5MIRROR_SERVER_SETTINGS_QUOTA_RULES_H_
#define H5MIRROR_SERVER_SETTINGS_QUOTA_RULES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace h5mirror::server {

struct Setting;

struct QuotaRule {
  // Below the root; "" is the root itself. A component "${user}" stands for any one name: each of
  // those directories is an account of its own.
  std::string directory;
  uint64_t head_bytes = 0;     // of all heads, without holes; 0: no limit
  uint64_t history_bytes = 0;  // of the bytes of older versions; 0: no limit
  uint64_t max_files = 0;      // 0: no limit
  std::string source = {};     // "/etc/h5mirror/h5mirrord.toml:12"
  uint64_t max_tags = 0;       // of all versions of all files; 0: no limit
  uint64_t removed_bytes = 0;  // of removed files, heads and histories; 0: no limit
  // Bytes of segments in the archive; 0: no limit. At the limit no further history goes there.
  uint64_t archived_bytes = 0;

  // The account that the file `name` counts to, a directory; nullopt: it is not below `directory`.
  std::optional<std::string> AccountOf(std::string_view name) const;
  // For messages and notices: `[[quota]] (h5mirrord.toml:12)`.
  std::string Label() const;
  bool operator==(const QuotaRule& other) const = default;
};

// The rule of one [[quota]] table. kInvalidArgument names its source, key and value.
absl::StatusOr<QuotaRule> MakeQuotaRule(const Setting& table);

// The rule as a table of the configuration.
std::string Describe(const QuotaRule& rule);

// Whether the files of each account lie in one cell of a cluster: each cell has its own server,
// which counts its own files only. kInvalidArgument names the table and two cells of an account.
absl::Status CheckWithinCells(absl::Span<const QuotaRule> rules,
                              absl::Span<const std::string> cells);

// Tables that no file counts to, because an earlier one takes all their files: one sentence for
// each, with both sources.
std::vector<std::string> FindUnreachable(absl::Span<const QuotaRule> rules);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_QUOTA_RULES_H_
