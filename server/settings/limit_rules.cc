#include "server/settings/limit_rules.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/human.h"
#include "base/setting_values.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/settings/config.h"

namespace h5mirror::server {
namespace {

constexpr int kCountMax = 1'000'000;
// A message has up to 1.5 MiB, and a stream waits until it is paid for: half a minute at most.
constexpr uint64_t kBandwidthMin = 64 << 10;
constexpr uint64_t kBandwidthMax = uint64_t{1} << 40;

absl::Status SetCount(std::string_view text, int min, std::optional<uint64_t>& count) {
  H5M_ASSIGN_OR_RETURN(const int value, ParseIntIn(text, min, kCountMax));
  count = static_cast<uint64_t>(value);
  return absl::OkStatus();
}

struct RuleKey {
  std::string_view name;
  bool repeats;  // may have several values
  absl::Status (*set)(std::string_view text, LimitRule& rule);
};

constexpr RuleKey kRuleKeys[] = {
    {"users", true,
     [](std::string_view text, LimitRule& rule) { return AddCallerName(text, rule.users); }},
    {"groups", true,
     [](std::string_view text, LimitRule& rule) { return AddCallerName(text, rule.groups); }},
    {"sessions", false,
     [](std::string_view text, LimitRule& rule) { return SetCount(text, 0, rule.sessions); }},
    {"streams", false,
     [](std::string_view text, LimitRule& rule) { return SetCount(text, 0, rule.streams); }},
    {"calls", false,
     [](std::string_view text, LimitRule& rule) { return SetCount(text, 1, rule.calls); }},
    {"bandwidth", false,
     [](std::string_view text, LimitRule& rule) -> absl::Status {
       H5M_ASSIGN_OR_RETURN(rule.bandwidth, ParseBytesIn(text, kBandwidthMin, kBandwidthMax));
       return absl::OkStatus();
     }},
};

absl::Status SetPart(const Setting& part, std::set<std::string>& seen, LimitRule& rule) {
  const auto* key = std::find_if(std::begin(kRuleKeys), std::end(kRuleKeys),
                                 [&](const RuleKey& each) { return each.name == part.key; });
  if (key == std::end(kRuleKeys)) {
    std::vector<std::string_view> names;
    for (const RuleKey& each : kRuleKeys) names.push_back(each.name);
    return UnknownTableKey("limits", part, names,
                           "docs/reference/limits-of-users.md shows all keys");
  }
  if (part.is_empty_array) {
    return absl::InvalidArgumentError(
        StrCat(part.source, ": ", part.key, " = []: names none; without the key, all are meant"));
  }
  const bool is_new = seen.insert(part.key).second;
  if (!is_new && !key->repeats) {
    return absl::InvalidArgumentError(StrCat(part.source, ": ", part.key, ": has one value"));
  }
  if (const absl::Status status = key->set(part.text, rule); !status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(part.source, ": ", part.key, " = \"", part.text, "\": ", status.message()));
  }
  return absl::OkStatus();
}

void AddCount(std::string_view name, const std::optional<uint64_t>& count, std::string& text) {
  if (count.has_value()) StrAppend(&text, name, " = ", *count, "\n");
}

}  // namespace

absl::StatusOr<LimitRule> MakeLimitRule(const Setting& table) {
  LimitRule rule;
  rule.source = table.source;
  std::set<std::string> seen;
  for (const Setting& part : table.parts) H5M_RETURN_IF_ERROR(SetPart(part, seen, rule));
  return rule;
}

absl::StatusOr<std::vector<LimitRule>> MakeLimitRules(absl::Span<const Setting> settings) {
  std::vector<LimitRule> rules;
  for (const Setting& setting : settings) {
    if (setting.key != "limits") continue;
    H5M_ASSIGN_OR_RETURN(LimitRule rule, MakeLimitRule(setting));
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::string Describe(const LimitRule& rule) {
  std::string text = "[[limits]]\n";
  if (!rule.users.empty()) StrAppend(&text, "users = ", ListOfNames(rule.users), "\n");
  if (!rule.groups.empty()) StrAppend(&text, "groups = ", ListOfNames(rule.groups), "\n");
  AddCount("sessions", rule.sessions, text);
  AddCount("streams", rule.streams, text);
  AddCount("calls", rule.calls, text);
  if (rule.bandwidth.has_value()) {
    StrAppend(&text, "bandwidth = \"", HumanBytes(*rule.bandwidth), "\"\n");
  }
  return text;
}

std::vector<std::string> FindUnreachable(absl::Span<const LimitRule> rules) {
  std::vector<std::string> found;
  for (size_t i = 0; i < rules.size(); ++i) {
    const auto earlier = rules.first(i);
    const auto covering = std::find_if(earlier.begin(), earlier.end(), [&](const auto& each) {
      return each.callers().Covers(rules[i].callers());
    });
    if (covering == earlier.end()) continue;
    found.push_back(StrCat(rules[i].source, ": this [[limits]] table never decides: the one at ",
                           covering->source, " takes all its callers"));
  }
  return found;
}

}  // namespace h5mirror::server
