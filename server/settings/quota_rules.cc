#include "server/settings/quota_rules.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/store.h"
#include "server/settings/access_rules.h"
#include "server/settings/config.h"

namespace h5mirror::server {
namespace {

constexpr uint64_t kCountMax = 1'000'000'000'000;  // of files, and of tags
// Less is taken by one small file with its history.
constexpr uint64_t kBytesMin = uint64_t{1} << 20;

absl::Status SetBytes(std::string_view text, uint64_t& bytes) {
  H5M_ASSIGN_OR_RETURN(bytes, ParseBytes(text));
  return bytes >= kBytesMin ? absl::OkStatus() : absl::InvalidArgumentError("must be 1MiB or more");
}

absl::Status SetCount(std::string_view text, uint64_t& count) {
  return absl::SimpleAtoi(ToAbsl(text), &count) && count >= 1 && count <= kCountMax
             ? absl::OkStatus()
             : absl::InvalidArgumentError(StrCat("must be a whole number in 1..", kCountMax));
}

absl::Status CheckDirectory(std::string_view directory) {
  if (directory.empty()) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(store::CheckName(directory));
  for (const absl::string_view part : absl::StrSplit(ToAbsl(directory), '/')) {
    if (ToStd(part) == kUserInGlob) continue;
    if (part.find_first_of("*?[") != absl::string_view::npos) {
      return absl::InvalidArgumentError("a directory, not a pattern: \"home/${user}\"");
    }
    if (absl::StrContains(part, "${")) {
      return absl::InvalidArgumentError("${user} stands alone between two slashes");
    }
  }
  return absl::OkStatus();
}

struct RuleKey {
  std::string_view name;
  absl::Status (*set)(std::string_view text, QuotaRule& rule);
};

constexpr RuleKey kRuleKeys[] = {
    {"directory",
     [](std::string_view text, QuotaRule& rule) {
       rule.directory = text;
       return CheckDirectory(text);
     }},
    {"head_bytes",
     [](std::string_view text, QuotaRule& rule) { return SetBytes(text, rule.head_bytes); }},
    {"history_bytes",
     [](std::string_view text, QuotaRule& rule) { return SetBytes(text, rule.history_bytes); }},
    {"max_files",
     [](std::string_view text, QuotaRule& rule) { return SetCount(text, rule.max_files); }},
    {"max_tags",
     [](std::string_view text, QuotaRule& rule) { return SetCount(text, rule.max_tags); }},
    {"removed_bytes",
     [](std::string_view text, QuotaRule& rule) { return SetBytes(text, rule.removed_bytes); }},
    {"archived_bytes",
     [](std::string_view text, QuotaRule& rule) { return SetBytes(text, rule.archived_bytes); }},
};

absl::Status UnknownKey(const Setting& part) {
  std::vector<std::string_view> names;
  for (const RuleKey& key : kRuleKeys) names.push_back(key.name);
  return UnknownTableKey("quota", part, names, "docs/reference/quotas.md shows all keys");
}

// `name` without its first component, which `component` gets; false: `name` is the file's own, in
// no directory.
bool TakeDirectory(std::string_view& name, std::string_view& component) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return false;
  component = name.substr(0, slash);
  name.remove_prefix(slash + 1);
  return true;
}

}  // namespace

std::optional<std::string> QuotaRule::AccountOf(std::string_view name) const {
  if (directory.empty()) return "";
  std::string_view left = name;
  for (const absl::string_view wanted : absl::StrSplit(ToAbsl(directory), '/')) {
    std::string_view component;
    if (!TakeDirectory(left, component)) return std::nullopt;
    if (ToStd(wanted) != kUserInGlob && ToStd(wanted) != component) return std::nullopt;
  }
  return std::string(name.substr(0, name.size() - left.size() - 1));
}

absl::Status CheckWithinCells(absl::Span<const QuotaRule> rules,
                              absl::Span<const std::string> cells) {
  for (const QuotaRule& rule : rules) {
    std::map<std::string, std::string> cell_of;  // by account: the first cell within it
    for (const std::string& cell : cells) {
      // The account that the cell lies in, if it does: that of a file of the cell's own name.
      const std::optional<std::string> account = rule.AccountOf(cell);
      if (!account.has_value()) continue;
      const auto [other, is_new] = cell_of.try_emplace(*account, cell);
      if (is_new) continue;
      return absl::InvalidArgumentError(
          StrCat(rule.source, ": [[quota]] directory = \"", rule.directory, "\": \"", *account,
                 "\" has the cells \"", other->second, "\" and \"", cell,
                 "\" of [cluster], and each cell's server counts its own files only: give each "
                 "cell a table "
                 "of its own, or set a quota of CephFS (ceph.quota.max_bytes)"));
    }
  }
  return absl::OkStatus();
}

std::string QuotaRule::Label() const {
  return StrCat("[[quota]] (", std::filesystem::path(source).filename().string(), ")");
}

absl::StatusOr<QuotaRule> MakeQuotaRule(const Setting& table) {
  QuotaRule rule;
  rule.source = table.source;
  std::set<std::string_view> seen;
  for (const Setting& part : table.parts) {
    const auto* key = std::find_if(std::begin(kRuleKeys), std::end(kRuleKeys),
                                   [&](const RuleKey& each) { return each.name == part.key; });
    if (key == std::end(kRuleKeys)) return UnknownKey(part);
    absl::Status status = absl::OkStatus();
    if (part.is_empty_array || !seen.insert(key->name).second) {
      status = absl::InvalidArgumentError("has one value");
    } else {
      status = key->set(part.text, rule);
    }
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(part.source, ": ", part.key, " = \"", part.text, "\": ", status.message()));
    }
  }
  std::string_view wrong;
  if (!seen.contains("directory")) {
    wrong = "it names no directory: directory = \"home/${user}\"";
  } else if (seen.size() == 1) {
    wrong =
        "it limits nothing: head_bytes, history_bytes, archived_bytes, max_files, max_tags or "
        "removed_bytes";
  }
  if (wrong.empty()) return rule;
  return absl::InvalidArgumentError(StrCat(rule.source, ": [[quota]]: ", wrong));
}

std::string Describe(const QuotaRule& rule) {
  std::string text = StrCat("[[quota]]\ndirectory = \"", rule.directory, "\"\n");
  if (rule.head_bytes > 0) StrAppend(&text, "head_bytes = \"", HumanBytes(rule.head_bytes), "\"\n");
  if (rule.history_bytes > 0) {
    StrAppend(&text, "history_bytes = \"", HumanBytes(rule.history_bytes), "\"\n");
  }
  if (rule.max_files > 0) StrAppend(&text, "max_files = ", rule.max_files, "\n");
  if (rule.max_tags > 0) StrAppend(&text, "max_tags = ", rule.max_tags, "\n");
  if (rule.removed_bytes > 0) {
    StrAppend(&text, "removed_bytes = \"", HumanBytes(rule.removed_bytes), "\"\n");
  }
  if (rule.archived_bytes > 0) {
    StrAppend(&text, "archived_bytes = \"", HumanBytes(rule.archived_bytes), "\"\n");
  }
  return text;
}

std::vector<std::string> FindUnreachable(absl::Span<const QuotaRule> rules) {
  std::vector<std::string> found;
  for (size_t i = 0; i < rules.size(); ++i) {
    // A name below it, with "${user}" as any other name.
    const std::string name = StrCat(rules[i].directory, rules[i].directory.empty() ? "" : "/", "x");
    const auto earlier = rules.first(i);
    const auto covering = std::find_if(earlier.begin(), earlier.end(), [&](const auto& each) {
      return each.AccountOf(name).has_value();
    });
    if (covering == earlier.end()) continue;
    found.push_back(StrCat(rules[i].source, ": no file counts to this [[quota]] table: the one at ",
                           covering->source, " takes all that it is for"));
  }
  return found;
}

}  // namespace h5mirror::server
