#include "server/settings/retention_rules.h"

#include <filesystem>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "base/glob.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/store.h"
#include "server/settings/config.h"

namespace h5mirror::server {
namespace {

constexpr int64_t kCountMax = 1'000'000'000;

absl::Status SetCount(std::string_view text, int64_t& count) {
  if (absl::SimpleAtoi(ToAbsl(text), &count) && count >= 1 && count <= kCountMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(StrCat("must be a whole number in 1..", kCountMax));
}

struct RuleKey {
  std::string_view name;
  bool repeats;  // may have several values
  absl::Status (*set)(std::string_view text, RetentionRule& rule);
};

constexpr RuleKey kRuleKeys[] = {
    {"files", true,
     [](std::string_view text, RetentionRule& rule) {
       rule.files.emplace_back(text);
       return CheckGlob(text);
     }},
    {"keep_all", false,
     [](std::string_view text, RetentionRule& rule) {
       rule.keep_all = text == "true";
       return text == "true" ? absl::OkStatus() : absl::InvalidArgumentError("must be true");
     }},
    {"keep_last", false,
     [](std::string_view text, RetentionRule& rule) {
       return SetCount(text, rule.policy.keep_last);
     }},
    {"keep_hourly", false,
     [](std::string_view text, RetentionRule& rule) {
       return SetCount(text, rule.policy.keep_hourly);
     }},
    {"keep_daily", false,
     [](std::string_view text, RetentionRule& rule) {
       return SetCount(text, rule.policy.keep_daily);
     }},
    {"keep_weekly", false,
     [](std::string_view text, RetentionRule& rule) {
       return SetCount(text, rule.policy.keep_weekly);
     }},
    {"keep_monthly", false,
     [](std::string_view text, RetentionRule& rule) {
       return SetCount(text, rule.policy.keep_monthly);
     }},
    {"keep_yearly", false,
     [](std::string_view text, RetentionRule& rule) {
       return SetCount(text, rule.policy.keep_yearly);
     }},
    {"keep_within", false,
     [](std::string_view text, RetentionRule& rule) -> absl::Status {
       H5M_ASSIGN_OR_RETURN(rule.policy.keep_within, ParseLongDuration(text));
       return rule.policy.keep_within > absl::ZeroDuration()
                  ? absl::OkStatus()
                  : absl::InvalidArgumentError("must be more than 0, as in 30d");
     }},
    {"keep_tags", true,
     [](std::string_view text, RetentionRule& rule) {
       rule.policy.keep_tags.emplace_back(text);
       return store::CheckTag(text);
     }},
    {"history_max_bytes", false,
     [](std::string_view text, RetentionRule& rule) -> absl::Status {
       H5M_ASSIGN_OR_RETURN(rule.history_max_bytes, ParseBytes(text));
       return rule.history_max_bytes >= (1 << 20)
                  ? absl::OkStatus()
                  : absl::InvalidArgumentError("must be 1MiB or more");
     }},
};

const RuleKey* FindRuleKey(std::string_view name) {
  for (const RuleKey& key : kRuleKeys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

absl::Status UnknownKey(const Setting& part) {
  std::vector<std::string_view> names;
  for (const RuleKey& key : kRuleKeys) names.push_back(key.name);
  return UnknownTableKey("retention", part, names, "docs/reference/retention.md shows all keys");
}

absl::Status CheckRule(const RetentionRule& rule) {
  const bool keeps_some = !rule.policy.empty() || rule.history_max_bytes > 0;
  std::string_view wrong;
  if (rule.files.empty()) {
    wrong = "it names no files: files = \"runs/**\", or \"**\" for all";
  } else if (!rule.keep_all && !keeps_some) {
    wrong =
        "it does not say what to keep: keep_last, keep_hourly, keep_daily, keep_weekly, "
        "keep_monthly, keep_yearly, keep_within, keep_tags, history_max_bytes, or keep_all = true";
  } else if (rule.keep_all && keeps_some) {
    wrong = "with keep_all = true it must say nothing else";
  }
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(rule.source, ": [[retention]]: ", wrong));
}

std::string Quoted(const std::vector<std::string>& texts) {
  return StrCat("\"", absl::StrJoin(texts, "\", \""), "\"");
}

}  // namespace

bool RetentionRule::Matches(std::string_view name) const { return AnyGlobMatches(files, name); }

std::string RetentionRule::Label() const {
  return StrCat(Quoted(files), " (", std::filesystem::path(source).filename().string(), ")");
}

const RetentionRule* FindRule(absl::Span<const RetentionRule> rules, std::string_view name) {
  for (const RetentionRule& rule : rules) {
    if (rule.Matches(name)) return &rule;
  }
  return nullptr;
}

absl::StatusOr<RetentionRule> MakeRetentionRule(const Setting& table) {
  RetentionRule rule;
  rule.source = table.source;
  std::string_view before;
  for (const Setting& part : table.parts) {
    const RuleKey* key = FindRuleKey(part.key);
    if (key == nullptr) return UnknownKey(part);
    if (part.is_empty_array) continue;
    absl::Status status = key->set(part.text, rule);
    if (status.ok() && part.key == before && !key->repeats) {
      status = absl::InvalidArgumentError("has one value, not several");
    }
    before = part.key;
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(part.source, ": ", part.key, " = \"", part.text, "\": ", status.message()));
    }
  }
  H5M_RETURN_IF_ERROR(CheckRule(rule));
  return rule;
}

std::string Describe(const RetentionRule& rule) {
  std::string text = StrCat("[[retention]]\nfiles = [", Quoted(rule.files), "]\n");
  const auto count = [&text](std::string_view name, int64_t value) {
    if (value > 0) StrAppend(&text, name, " = ", value, "\n");
  };
  if (rule.keep_all) StrAppend(&text, "keep_all = true\n");
  count("keep_last", rule.policy.keep_last);
  count("keep_hourly", rule.policy.keep_hourly);
  count("keep_daily", rule.policy.keep_daily);
  count("keep_weekly", rule.policy.keep_weekly);
  count("keep_monthly", rule.policy.keep_monthly);
  count("keep_yearly", rule.policy.keep_yearly);
  if (rule.policy.keep_within > absl::ZeroDuration()) {
    StrAppend(&text, "keep_within = ", HumanDuration(rule.policy.keep_within), "\n");
  }
  if (!rule.policy.keep_tags.empty()) {
    StrAppend(&text, "keep_tags = [", Quoted(rule.policy.keep_tags), "]\n");
  }
  if (rule.history_max_bytes > 0) {
    StrAppend(&text, "history_max_bytes = ", HumanBytes(rule.history_max_bytes), "\n");
  }
  return text;
}

}  // namespace h5mirror::server
