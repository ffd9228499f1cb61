#include "server/settings/notify_rules.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/curl_library.h"
#include "base/glob.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/settings/config.h"

namespace h5mirror::server {
namespace {

constexpr size_t kUrlBytesMax = 4096;
constexpr size_t kAddressBytesMax = 254;  // RFC 5321, 4.5.3.1.3
constexpr size_t kArgumentBytesMax = 4096;

absl::Status SetPath(std::string_view text, std::filesystem::path& path) {
  path = text;
  if (path.is_absolute()) return absl::OkStatus();
  return absl::InvalidArgumentError("must be an absolute path");
}

absl::Status AddArgument(std::string_view text, NotifyRule& rule) {
  if (rule.command.empty() && !std::filesystem::path(text).is_absolute()) {
    return absl::InvalidArgumentError(
        "must be an absolute path; arguments follow it, as in [\"/usr/local/bin/tell\", \"ops\"], "
        "since no shell splits it");
  }
  if (text.size() > kArgumentBytesMax || text.find('\0') != std::string_view::npos) {
    return absl::InvalidArgumentError(
        StrCat("an argument has at most ", kArgumentBytesMax, " bytes, and no NUL"));
  }
  rule.command.emplace_back(text);
  return absl::OkStatus();
}

// An address goes into a header as it is, so it is of the plain kind.
absl::Status AddAddress(std::string_view text, NotifyRule& rule) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c > ' ' && c < 0x7f &&
           std::string_view("()<>[]:;,\\\"").find(c) == std::string_view::npos;
  });
  const size_t at = text.find('@');
  if (!is_plain || text.size() > kAddressBytesMax || at == 0 || at == std::string_view::npos ||
      at + 1 == text.size() || at != text.rfind('@')) {
    return absl::InvalidArgumentError("must be an address such as ops@example.org");
  }
  rule.mail.emplace_back(text);
  return absl::OkStatus();
}

struct RuleKey {
  std::string_view name;
  absl::Status (*set)(std::string_view text, NotifyRule& rule);
  bool takes_one = false;
};

constexpr RuleKey kRuleKeys[] = {
    {"events",
     [](std::string_view text, NotifyRule& rule) -> absl::Status {
       H5M_ASSIGN_OR_RETURN(const EventKind kind, ParseEventKind(text));
       rule.events.push_back(kind);
       return absl::OkStatus();
     }},
    {"files",
     [](std::string_view text, NotifyRule& rule) {
       rule.files.emplace_back(text);
       return CheckGlob(text);
     }},
    {"url",
     [](std::string_view text, NotifyRule& rule) -> absl::Status {
       rule.url = std::string(text);
       if (text.size() > kUrlBytesMax) {
         return absl::InvalidArgumentError(StrCat("has more than ", kUrlBytesMax, " bytes"));
       }
       return CheckHttpUrl(text);
     },
     /*takes_one=*/true},
    {"secret_file",
     [](std::string_view text, NotifyRule& rule) { return SetPath(text, rule.secret_file); },
     /*takes_one=*/true},
    {"ca_file", [](std::string_view text, NotifyRule& rule) { return SetPath(text, rule.ca_file); },
     /*takes_one=*/true},
    {"command", AddArgument},
    {"mail", AddAddress},
    {"sendmail",
     [](std::string_view text, NotifyRule& rule) { return SetPath(text, rule.sendmail); },
     /*takes_one=*/true},
};

absl::Status UnknownKey(const Setting& part) {
  std::vector<std::string_view> names;
  for (const RuleKey& key : kRuleKeys) names.push_back(key.name);
  return UnknownTableKey("notify", part, names, "docs/how-to/be-told.md shows all keys");
}

bool Has(const Setting& table, std::string_view key) {
  return std::any_of(table.parts.begin(), table.parts.end(),
                     [key](const Setting& part) { return part.key == key; });
}

// The URL itself may be a secret.
std::string Shown(const Setting& part) { return part.key == "url" ? "..." : part.text; }

absl::Status SetPart(const Setting& table, const Setting& part, NotifyRule& rule) {
  const auto* key = std::find_if(std::begin(kRuleKeys), std::end(kRuleKeys),
                                 [&](const RuleKey& each) { return each.name == part.key; });
  if (key == std::end(kRuleKeys)) return UnknownKey(part);
  if (part.is_empty_array) {
    return absl::InvalidArgumentError(StrCat(part.source, ": ", part.key, " = []: names none"));
  }
  const auto same = [&](const Setting& each) { return each.key == part.key; };
  if (key->takes_one && std::count_if(table.parts.begin(), table.parts.end(), same) > 1) {
    return absl::InvalidArgumentError(
        StrCat(part.source, ": ", part.key, ": takes one value; write a table for each"));
  }
  const absl::Status status = key->set(part.text, rule);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      StrCat(part.source, ": ", part.key, " = \"", Shown(part), "\": ", ToStd(status.message())));
}

// The error of the table as a whole; empty: none.
std::string_view WrongWith(const Setting& table) {
  const int receivers = static_cast<int>(Has(table, "url")) +
                        static_cast<int>(Has(table, "command")) +
                        static_cast<int>(Has(table, "mail"));
  if (receivers == 0) {
    return "it does not say who is told: url = \"https://...\", command = [\"/PATH\"] or mail = "
           "\"ops@example.org\"";
  }
  if (receivers > 1) return "it has more than one of url, command and mail; write a table for each";
  if (!Has(table, "url") && (Has(table, "secret_file") || Has(table, "ca_file"))) {
    return "secret_file and ca_file belong to a url";
  }
  if (!Has(table, "mail") && Has(table, "sendmail")) return "sendmail belongs to mail";
  return "";
}

std::string List(const std::vector<std::string>& texts) {
  return StrCat("[\"", absl::StrJoin(texts, "\", \""), "\"]");
}

}  // namespace

std::string_view ReceiverName(ReceiverKind kind) {
  switch (kind) {
    case ReceiverKind::kUrl:
      return "url";
    case ReceiverKind::kCommand:
      return "command";
    case ReceiverKind::kMail:
      return "mail";
  }
  return "";
}

ReceiverKind NotifyRule::kind() const {
  if (!url.empty()) return ReceiverKind::kUrl;
  return command.empty() ? ReceiverKind::kMail : ReceiverKind::kCommand;
}

bool NotifyRule::Takes(EventKind event, std::string_view file) const {
  if (event == EventKind::kTest) return true;
  const bool is_named =
      events.empty() || std::find(events.begin(), events.end(), event) != events.end();
  return is_named && (file.empty() || files.empty() || AnyGlobMatches(files, file));
}

bool NotifyRule::HasReceiverOf(const NotifyRule& other) const {
  return url == other.url && command == other.command && mail == other.mail &&
         sendmail == other.sendmail;
}

std::string NotifyRule::Label() const {
  const std::string_view name = ReceiverName(kind());
  switch (kind()) {
    case ReceiverKind::kUrl:
      return StrCat(name, " ", HttpOrigin(url));
    case ReceiverKind::kCommand:
      return StrCat(name, " ", command[0]);
    case ReceiverKind::kMail:
      return StrCat(name, " ", absl::StrJoin(mail, ", "));
  }
  return "";
}

absl::StatusOr<NotifyRule> MakeNotifyRule(const Setting& table) {
  NotifyRule rule;
  rule.source = table.source;
  for (const Setting& part : table.parts) H5M_RETURN_IF_ERROR(SetPart(table, part, rule));
  const std::string_view wrong = WrongWith(table);
  if (wrong.empty()) return rule;
  return absl::InvalidArgumentError(StrCat(rule.source, ": [[notify]]: ", wrong));
}

std::string Describe(const NotifyRule& rule) {
  std::string text = "[[notify]]\n";
  if (!rule.events.empty()) {
    std::vector<std::string> names;
    for (const EventKind kind : rule.events) names.emplace_back(EventName(kind));
    StrAppend(&text, "events = ", List(names), "\n");
  }
  if (!rule.files.empty()) StrAppend(&text, "files = ", List(rule.files), "\n");
  switch (rule.kind()) {
    case ReceiverKind::kUrl:
      StrAppend(&text, "url = \"", HttpOrigin(rule.url), "/...\"\n");
      if (!rule.secret_file.empty()) {
        StrAppend(&text, "secret_file = \"", rule.secret_file.string(), "\"\n");
      }
      if (!rule.ca_file.empty()) StrAppend(&text, "ca_file = \"", rule.ca_file.string(), "\"\n");
      break;
    case ReceiverKind::kCommand:
      StrAppend(&text, "command = ", List(rule.command), "\n");
      break;
    case ReceiverKind::kMail:
      StrAppend(&text, "mail = ", List(rule.mail), "\n");
      StrAppend(&text, "sendmail = \"", rule.sendmail.string(), "\"\n");
      break;
  }
  return text;
}

}  // namespace h5mirror::server
