#include "server/settings/access_rules.h"

#include <algorithm>

#include "absl/strings/str_replace.h"
#include "base/glob.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/settings/config.h"

namespace h5mirror::server {
namespace {

absl::Status CheckUserGlob(std::string_view glob) {
  const std::string plain = absl::StrReplaceAll(ToAbsl(glob), {{ToAbsl(kUserInGlob), "user"}});
  H5M_RETURN_IF_ERROR(CheckGlob(plain));
  if (plain.find("${") == std::string::npos) return absl::OkStatus();
  return absl::InvalidArgumentError("${user}, the caller's name, is all that can stand there");
}

// Kinds of callers in names of owners. A user of munge is one of this host.
constexpr std::string_view kOwnerKinds[] = {"unix:", "token:", "cert:", "jwt:"};

bool HasKind(std::string_view name) {
  return std::any_of(std::begin(kOwnerKinds), std::end(kOwnerKinds),
                     [&](std::string_view kind) { return name.starts_with(kind); });
}

absl::Status AddOwner(std::string_view text, std::vector<std::string>& owners) {
  if (text.starts_with("munge:")) {
    return absl::InvalidArgumentError(
        StrCat("files of users of munge are theirs as users of this host: unix:", text.substr(6)));
  }
  if (text != kUserInGlob && text.find("${") != std::string_view::npos) {
    return absl::InvalidArgumentError("${user}, the caller, stands alone there");
  }
  return AddCallerName(text, owners);
}

struct RuleKey {
  std::string_view name;
  absl::Status (*set)(std::string_view text, AccessRule& rule);
};

constexpr RuleKey kRuleKeys[] = {
    {"files",
     [](std::string_view text, AccessRule& rule) {
       rule.files.emplace_back(text);
       return CheckUserGlob(text);
     }},
    {"owner", [](std::string_view text, AccessRule& rule) { return AddOwner(text, rule.owners); }},
    {"users",
     [](std::string_view text, AccessRule& rule) { return AddCallerName(text, rule.users); }},
    {"groups",
     [](std::string_view text, AccessRule& rule) { return AddCallerName(text, rule.groups); }},
    {"allow",
     [](std::string_view text, AccessRule& rule) -> absl::Status {
       H5M_ASSIGN_OR_RETURN(const Rights more, Rights::Parse(text));
       rule.allow = rule.allow.Or(more);
       return absl::OkStatus();
     }},
};

absl::Status UnknownKey(const Setting& part) {
  std::vector<std::string_view> names;
  for (const RuleKey& key : kRuleKeys) names.push_back(key.name);
  return UnknownTableKey("access", part, names, "docs/reference/rights.md shows all keys");
}

// Whether all names that `narrow` matches are matched by `wide`. False may mean: not known.
bool Covers(std::string_view wide, std::string_view narrow) {
  if (wide == narrow || wide == "**") return true;
  if (!wide.ends_with("/**")) return false;
  const std::string_view directory = wide.substr(0, wide.size() - 2);
  return directory.find_first_of("*?[\\") == std::string_view::npos &&
         narrow.starts_with(directory);
}

bool CoversFiles(const AccessRule& wide, const AccessRule& narrow) {
  return std::all_of(narrow.files.begin(), narrow.files.end(), [&](const std::string& glob) {
    return std::any_of(wide.files.begin(), wide.files.end(),
                       [&](const std::string& each) { return Covers(each, glob); });
  });
}

// Whether each file that `narrow` takes by its owner is taken by `wide`.
bool CoversOwners(const AccessRule& wide, const AccessRule& narrow) {
  if (wide.owners.empty()) return true;
  return !narrow.owners.empty() &&
         std::all_of(narrow.owners.begin(), narrow.owners.end(), [&](const std::string& owner) {
           return std::find(wide.owners.begin(), wide.owners.end(), owner) != wide.owners.end();
         });
}

}  // namespace

bool OwnerIs(std::string_view named, std::string_view owner, std::string_view caller) {
  if (owner.empty()) return false;
  if (named == kUserInGlob) return owner == caller;
  // "unix:anna" is no name of a token.
  if (HasKind(named)) return owner == named;
  const size_t colon = owner.find(':');
  return colon != std::string_view::npos && owner.substr(colon + 1) == named;
}

absl::Status CheckKindOfOwner(std::string_view owner) {
  if (owner.empty() || HasKind(owner)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "an owner is unix:NAME (a user of this host, by munge too), token:NAME, cert:NAME or "
      "jwt:NAME");
}

absl::StatusOr<AccessRule> MakeAccessRule(const Setting& table) {
  AccessRule rule;
  rule.source = table.source;
  bool allows = false;
  for (const Setting& part : table.parts) {
    const auto* key = std::find_if(std::begin(kRuleKeys), std::end(kRuleKeys),
                                   [&](const RuleKey& each) { return each.name == part.key; });
    if (key == std::end(kRuleKeys)) return UnknownKey(part);
    allows = allows || part.key == "allow";
    if (part.is_empty_array && part.key != "allow") {
      return absl::InvalidArgumentError(
          StrCat(part.source, ": ", part.key, " = []: names none; without the key, all are meant"));
    }
    if (part.is_empty_array) continue;
    if (const absl::Status status = key->set(part.text, rule); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(part.source, ": ", part.key, " = \"", part.text, "\": ", status.message()));
    }
  }
  std::string_view wrong;
  if (rule.files.empty()) {
    wrong = "it names no files: files = \"runs/**\", or \"**\" for all";
  } else if (!allows) {
    wrong = "it does not say what it allows: allow = [\"read\"]; allow = [] denies all";
  }
  if (wrong.empty()) return rule;
  return absl::InvalidArgumentError(StrCat(rule.source, ": [[access]]: ", wrong));
}

std::string Describe(const AccessRule& rule) {
  std::string text = StrCat("[[access]]\nfiles = ", ListOfNames(rule.files), "\n");
  if (!rule.owners.empty()) StrAppend(&text, "owner = ", ListOfNames(rule.owners), "\n");
  if (!rule.users.empty()) StrAppend(&text, "users = ", ListOfNames(rule.users), "\n");
  if (!rule.groups.empty()) StrAppend(&text, "groups = ", ListOfNames(rule.groups), "\n");
  StrAppend(&text, "allow = ", rule.allow.empty() ? "[]" : ListOfNames(rule.allow.Names()), "\n");
  return text;
}

std::vector<std::string> FindUnreachable(absl::Span<const AccessRule> rules) {
  std::vector<std::string> found;
  for (size_t i = 0; i < rules.size(); ++i) {
    const auto earlier = rules.first(i);
    const auto covering = std::find_if(earlier.begin(), earlier.end(), [&](const auto& each) {
      return each.callers().Covers(rules[i].callers()) && CoversOwners(each, rules[i]) &&
             CoversFiles(each, rules[i]);
    });
    if (covering == earlier.end()) continue;
    found.push_back(StrCat(rules[i].source, ": this [[access]] table never decides: the one at ",
                           covering->source, " takes all that it is for"));
  }
  return found;
}

}  // namespace h5mirror::server
