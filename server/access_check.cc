#include "server/access_check.h"

#include <pwd.h>

#include <algorithm>
#include <iostream>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/env.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "onion_store/store.h"
#include "server/door/auth.h"
#include "server/root_env.h"

namespace h5mirror::server {
namespace {

absl::StatusOr<std::unique_ptr<Authenticator>> LoadAuthenticator(const Config& config) {
  auto authenticator = std::make_unique<Authenticator>();
  if (config.HasTokens()) {
    H5M_ASSIGN_OR_RETURN(authenticator, Authenticator::Load(config.tokens_file));
  }
  authenticator->SetRules(config.access);
  return authenticator;
}

// The file's owner, as the question or the root has it. A server may go on meanwhile: a look at a
// directory changes nothing.
absl::StatusOr<store::FileOwner> OwnerFor(const Config& config, const AccessQuestion& question) {
  if (question.owner == "nobody") return store::FileOwner{true, ""};
  if (!question.owner.empty()) {
    H5M_RETURN_IF_ERROR(CheckKindOfOwner(question.owner));
    return store::FileOwner{true, question.owner};
  }
  H5M_ASSIGN_OR_RETURN(const RootEnv root, RootEnv::Open(config, nullptr));
  const auto tree = root.env().OpenTree(config.root);
  const auto found = tree.ok() ? store::ReadOwner(**tree, question.file)
                               : absl::StatusOr<store::FileOwner>(tree.status());
  if (found.ok()) return found;
  return absl::Status(found.status().code(),
                      StrCat("whose the file is cannot be read: ", ToStd(found.status().message()),
                             "; give it with --owner, or run this as the server's user"));
}

// kNotFound: this host has no such user.
absl::StatusOr<Principal> UserOfHost(const std::string& name) {
  const passwd* const record = getpwnam(name.c_str());
  if (record == nullptr) return absl::NotFoundError("this host has no such user");
  H5M_ASSIGN_OR_RETURN(UnixUser user, LookUpUnixUser(record->pw_uid));
  return Principal{.name = user.name,
                   .rights = Rights::All(),
                   .issuer = Principal::Issuer::kUnix,
                   .uid = record->pw_uid,
                   .user = std::make_shared<const UnixUser>(std::move(user))};
}

// The kind of caller before the name, as in "unix:anna"; kNone: any.
Principal::Issuer TakeIssuer(std::string_view* name) {
  for (const auto issuer :
       {Principal::Issuer::kToken, Principal::Issuer::kUnix, Principal::Issuer::kCertificate,
        Principal::Issuer::kJwt, Principal::Issuer::kMunge}) {
    const std::string prefix = StrCat(IssuerName(issuer), ":");
    if (!name->starts_with(prefix)) continue;
    name->remove_prefix(prefix.size());
    return issuer;
  }
  return Principal::Issuer::kNone;
}

absl::Status AddTokens(const Config& config, std::string_view name,
                       std::vector<Principal>* callers) {
  H5M_ASSIGN_OR_RETURN(const std::vector<TokenEntry> tokens, ReadTokenFile(config.tokens_file));
  for (const TokenEntry& token : tokens) {
    if (token.name != name) continue;
    callers->push_back(Principal{.name = token.name,
                                 .rights = token.rights,
                                 .issuer = Principal::Issuer::kToken,
                                 .token = std::make_shared<const TokenEntry>(token)});
  }
  return absl::OkStatus();
}

// Adds the caller as a user of a Unix socket, and as one of munge.
absl::Status AddUser(const std::string& name, bool is_unix, bool is_munge,
                     std::vector<Principal>* callers) {
  absl::StatusOr<Principal> user = UserOfHost(name);
  if (absl::IsNotFound(user.status())) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(user.status());
  if (is_unix) callers->push_back(*user);
  user->issuer = Principal::Issuer::kMunge;
  if (is_munge) callers->push_back(*std::move(user));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Principal>> FindCallers(const Config& config, std::string_view name) {
  std::string_view plain = name;
  const Principal::Issuer issuer = TakeIssuer(&plain);
  const auto may_be = [issuer](Principal::Issuer each) {
    return issuer == Principal::Issuer::kNone || issuer == each;
  };
  std::vector<Principal> callers;
  H5M_RETURN_IF_ERROR(AddUser(std::string(plain), may_be(Principal::Issuer::kUnix),
                              may_be(Principal::Issuer::kMunge) && config.HasMunge(), &callers));
  // Only the authority knows the users with certificates. Only the issuer knows those with logins,
  // and puts the groups into each token.
  for (const auto& [each, is_known] :
       {std::pair(Principal::Issuer::kCertificate, config.HasClientCertificates()),
        std::pair(Principal::Issuer::kJwt, config.HasLogins())}) {
    if (!is_known || !may_be(each)) continue;
    callers.push_back(
        Principal{.name = std::string(plain), .rights = Rights::All(), .issuer = each});
  }
  if (may_be(Principal::Issuer::kToken) && config.HasTokens()) {
    H5M_RETURN_IF_ERROR(AddTokens(config, plain, &callers));
  }
  if (!callers.empty()) return callers;
  return absl::NotFoundError(
      StrCat("\"", name, "\": neither this host nor ",
             config.HasTokens() ? config.tokens_file.string() : std::string("a tokens_file"),
             " has such a user"));
}

void ShowToken(const TokenEntry& token) {
  std::cout << "  token: " << token.rights.ToString() << token.limits.ToString() << "\n";
  if (absl::Now() >= token.limits.expires) std::cout << "  it has expired: no call is taken\n";
}

void ShowOwner(const store::FileOwner& owner) {
  std::string text = "nobody";
  if (!owner.owner.empty()) text = Printable(owner.owner);
  if (!owner.is_there) text = "no such file yet: the caller that makes it";
  std::cout << "  owner: " << text << "\n";
}

void ShowCaller(const Authenticator& authenticator, const Principal& caller,
                const std::string& file, const store::FileOwner& owner) {
  std::cout << CallerName(caller) << " and " << Printable(file) << "\n";
  if (caller.user != nullptr) {
    std::cout << "  groups: " << absl::StrJoin(caller.user->groups, ", ") << "\n";
  }
  if (caller.token != nullptr) ShowToken(*caller.token);
  if (caller.issuer == Principal::Issuer::kJwt) {
    std::cout << "  groups: those in its token, which are not known here: none count\n";
  }
  if (authenticator.asks_owners()) ShowOwner(owner);
  const std::shared_ptr<const AccessRule> rule = authenticator.RuleFor(caller, file);
  if (!authenticator.has_rules()) {
    std::cout << "  decided by: nothing, as there is no [[access]] table\n";
  } else if (rule == nullptr) {
    std::cout << "  decided by: no [[access]] table is for both, so nothing is allowed\n";
  } else {
    std::cout << "  decided by: the [[access]] table at " << Printable(rule->source) << "\n";
  }
  std::cout << "  rights: " << authenticator.RightsTo(caller, file).ToString() << "\n";
}

absl::StatusOr<bool> Show(const Config& config, const AccessQuestion& question) {
  H5M_RETURN_IF_ERROR(store::CheckName(question.file));
  Rights wanted;
  if (!question.right.empty()) {
    H5M_ASSIGN_OR_RETURN(wanted, Rights::Parse(question.right));
  }
  H5M_ASSIGN_OR_RETURN(const auto authenticator, LoadAuthenticator(config));
  H5M_ASSIGN_OR_RETURN(const std::vector<Principal> callers, FindCallers(config, question.user));
  store::FileOwner owner;
  if (authenticator->asks_owners()) {
    H5M_ASSIGN_OR_RETURN(owner, OwnerFor(config, question));
  }
  authenticator->SetOwners([&owner](std::string_view) { return owner; });
  bool is_allowed = false;
  for (const Principal& caller : callers) {
    ShowCaller(*authenticator, caller, question.file, owner);
    const bool has_expired = caller.token != nullptr && absl::Now() >= caller.token->limits.expires;
    is_allowed =
        is_allowed ||
        (!has_expired && authenticator->RightsTo(caller, question.file).And(wanted) == wanted);
  }
  return is_allowed;
}

}  // namespace

ExitCode CheckAccess(const Config& config, const AccessQuestion& question) {
  const absl::StatusOr<bool> is_allowed = Show(config, question);
  if (!is_allowed.ok()) {
    std::cerr << "h5mirrord: " << Printable(ToStd(is_allowed.status().message())) << "\n";
    return ExitCode::kUsage;
  }
  return *is_allowed || question.right.empty() ? ExitCode::kOk : ExitCode::kFailed;
}

}  // namespace h5mirror::server
