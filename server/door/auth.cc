#include "server/door/auth.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "base/glob.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "openssl/crypto.h"
#include "rpc/elsewhere.h"
#include "server/door/json_web_tokens.h"
#include "server/door/munge_credentials.h"

namespace h5mirror::server {
namespace {

constexpr size_t kNameShownMax = 4096;

AccessSubject SubjectOf(const Principal& principal) {
  return {principal.name, IssuerName(principal.issuer), principal.groups()};
}

absl::Status CheckExpiry(const TokenEntry& token) {
  const TokenLimits& limits = token.limits;
  if (absl::Now() < limits.expires) return absl::OkStatus();
  return absl::UnauthenticatedError(
      StrCat("token \"", token.name, "\" has expired, at ",
             absl::FormatTime(absl::RFC3339_sec, limits.expires, absl::UTCTimeZone()),
             ": ask the server's operator for another"));
}

absl::Status CheckAddress(const TokenEntry& token, const std::optional<Peer>& peer) {
  const TokenLimits& limits = token.limits;
  if (limits.from.empty()) return absl::OkStatus();
  const bool is_from = peer.has_value() && std::any_of(limits.from.begin(), limits.from.end(),
                                                       [&](const AddressRange& range) {
                                                         return range.Contains(peer->address);
                                                       });
  if (is_from) return absl::OkStatus();
  return absl::UnauthenticatedError(
      StrCat("token \"", token.name, "\" is not for calls from ",
             peer.has_value() ? peer->Name() : std::string("a Unix socket"),
             ": its operator has named other addresses"));
}

// The token in a header; nullopt: it holds none.
std::optional<std::string_view> BearerOf(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (!absl::StartsWithIgnoreCase(ToAbsl(authorization), ToAbsl(kScheme))) return std::nullopt;
  return authorization.substr(kScheme.size());
}

// A name that nobody has checked yet, cut to a length that fits into a message.
std::string_view Short(std::string_view name) { return name.substr(0, kNameShownMax); }

absl::Status Lacks(const Principal& principal, Rights rights, std::string_view file, Right right) {
  return absl::PermissionDeniedError(
      StrCat(CallerName(principal), " has the rights \"", rights.ToString(), "\"",
             file.empty() ? "" : " to ", Short(file), " and this call needs \"", NameOf(right),
             "\": ask the server's operator for ", file.empty() ? "one" : "it"));
}

}  // namespace

const std::vector<std::string>& Principal::groups() const {
  static const auto* const kNone = new std::vector<std::string>();
  if (login != nullptr) return login->groups;
  return user == nullptr ? *kNone : user->groups;
}

std::string_view IssuerName(Principal::Issuer issuer) {
  switch (issuer) {
    case Principal::Issuer::kNone:
      return "";
    case Principal::Issuer::kToken:
      return "token";
    case Principal::Issuer::kUnix:
      return "unix";
    case Principal::Issuer::kCertificate:
      return "cert";
    case Principal::Issuer::kJwt:
      return "jwt";
    case Principal::Issuer::kMunge:
      return "munge";
  }
  return "";
}

std::string OwnerName(const Principal& principal) {
  return OwnerName(IssuerName(principal.issuer), principal.name);
}

std::string CallerName(const Principal& principal) {
  switch (principal.issuer) {
    case Principal::Issuer::kNone:
      break;
    case Principal::Issuer::kToken:
      return StrCat("token \"", principal.name, "\"");
    case Principal::Issuer::kUnix:
    case Principal::Issuer::kMunge:
      return StrCat("user \"", principal.name, "\"");
    case Principal::Issuer::kCertificate:
      return StrCat("certificate \"", principal.name, "\"");
    case Principal::Issuer::kJwt:
      return StrCat("login \"", principal.name, "\"");
  }
  return "a caller without a name";
}

absl::Status CheckRight(const Principal& principal, Right right) {
  if (principal.rights.Has(right)) return absl::OkStatus();
  return Lacks(principal, principal.rights, "", right);
}

Authenticator::Authenticator(std::filesystem::path path)
    : path_(std::move(path)),
      rules_(std::make_shared<const AccessIndex>(std::vector<AccessRule>())) {}

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::Load(
    const std::filesystem::path& path) {
  auto authenticator = absl::WrapUnique(new Authenticator(path));
  H5M_RETURN_IF_ERROR(authenticator->Reload());
  return authenticator;
}

absl::Status Authenticator::Reload() {
  if (path_.empty()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(std::vector<TokenEntry> entries, ReadTokenFile(path_));
  if (entries.empty()) {
    return absl::InvalidArgumentError(
        StrCat("tokens_file ", path_.string(), " holds no token: run `h5mirrord token add NAME`"));
  }
  Tokens tokens;
  for (TokenEntry& entry : entries) {
    tokens.push_back(std::make_shared<const TokenEntry>(std::move(entry)));
  }
  absl::MutexLock lock(&mutex_);
  tokens_ = std::move(tokens);
  return absl::OkStatus();
}

void Authenticator::SetRules(std::vector<AccessRule> rules) {
  auto index = std::make_shared<const AccessIndex>(std::move(rules));
  absl::MutexLock lock(&mutex_);
  rules_ = std::move(index);
}

std::shared_ptr<const AccessIndex> Authenticator::rules() const {
  absl::MutexLock lock(&mutex_);
  return rules_;
}

bool Authenticator::has_rules() const { return !rules()->empty(); }

bool Authenticator::asks_owners() const { return rules()->has_owners(); }

absl::Time Authenticator::NextExpiry() const {
  absl::Time next = certificates_ == nullptr ? absl::InfiniteFuture() : certificates_->NextExpiry();
  if (logins_ != nullptr) next = std::min(next, logins_->NextExpiry());
  if (munge_ != nullptr) next = std::min(next, munge_->NextExpiry());
  absl::MutexLock lock(&mutex_);
  const absl::Time now = absl::Now();
  for (const auto& token : tokens_) {
    if (token->limits.expires > now) next = std::min(next, token->limits.expires);
  }
  return next;
}

bool Authenticator::LooksAt(std::string_view authorization) const {
  if (!path_.empty()) return true;
  if (MungeCredentialIn(authorization)) return true;
  return logins_ != nullptr && IsJsonWebToken(BearerOf(authorization).value_or(""));
}

std::optional<std::string_view> Authenticator::MungeCredentialIn(
    std::string_view authorization) const {
  if (munge_ == nullptr) return std::nullopt;
  const std::optional<std::string_view> token = BearerOf(authorization);
  return token && IsMungeCredential(*token) ? token : std::nullopt;
}

bool Authenticator::KnowsCaller(std::optional<std::string_view> authorization) const {
  const auto credential = MungeCredentialIn(authorization.value_or(""));
  if (!credential) return true;
  const std::optional<MungeCredentials::Found> found = munge_->Peek(*credential);
  if (!found) return false;
  return !found->ok() || users_.Peek((**found)->uid).has_value();
}

void Authenticator::AwaitCaller(std::string_view authorization, std::function<void()> then) const {
  const auto credential = MungeCredentialIn(authorization);
  if (!credential) return then();
  const auto await_name = [this, token = std::string(*credential), then] {
    const std::optional<MungeCredentials::Found> found = munge_->Peek(token);
    if (!found || !found->ok()) return then();
    users_.Await((**found)->uid, then);
  };
  munge_->Await(*credential, await_name);
}

std::optional<uid_t> Authenticator::MungeUser(std::string_view authorization) const {
  const auto credential = MungeCredentialIn(authorization);
  const auto found = credential ? munge_->Peek(*credential) : std::nullopt;
  if (!found || !found->ok()) return std::nullopt;
  return (**found)->uid;
}

std::vector<uid_t> Authenticator::MungeUsers() const {
  return munge_ == nullptr ? std::vector<uid_t>() : munge_->Users();
}

absl::Status Authenticator::NoToken() const {
  if (munge_ != nullptr) {
    return absl::UnauthenticatedError(
        StrCat("this server wants a credential of munge: write token = \"munge\" into "
               "~/.config/h5mirror/client.toml",
               logins_ != nullptr ? ", or run `h5mirror login`" : ""));
  }
  return absl::UnauthenticatedError(
      logins_ != nullptr ? "this server wants a token of your site's login: run `h5mirror login`"
                         : "this server wants a token: set token=@FILE, or put it into "
                           "~/.config/h5mirror/token");
}

absl::StatusOr<Principal> Authenticator::Authenticate(std::optional<std::string_view> authorization,
                                                      const CallerOrigin& origin) const {
  const bool has_token = authorization.has_value() && LooksAt(*authorization);
  const bool has_certificate = certificates_ != nullptr && !origin.certificate_pem.empty();
  if (!has_token && has_certificate) return AuthenticateCertificate(origin);
  if (!has_token && origin.uid.has_value() && has_rules()) return AuthenticateUser(*origin.uid);
  if (!wants_tokens() && certificates_ != nullptr) {
    return absl::UnauthenticatedError(
        "this server wants a client's certificate: put client.pem and client.key into "
        "~/.config/h5mirror");
  }
  if (!wants_tokens()) return Principal{.name = "", .rights = Rights::All()};
  if (!has_token) return NoToken();
  return AuthenticateBearer(*authorization, origin);
}

absl::StatusOr<Principal> Authenticator::AuthenticateBearer(std::string_view authorization,
                                                            const CallerOrigin& origin) const {
  const std::optional<std::string_view> token = BearerOf(authorization);
  if (!token) {
    return absl::UnauthenticatedError("the authorization header is not \"Bearer TOKEN\"");
  }
  if (MungeCredentialIn(authorization)) return AuthenticateMunge(*token, origin);
  if (logins_ != nullptr && IsJsonWebToken(*token)) return AuthenticateLogin(*token, origin);
  return AuthenticateToken(*token, origin);
}

absl::StatusOr<Principal> Authenticator::AuthenticateToken(std::string_view token,
                                                           const CallerOrigin& origin) const {
  const Sha256Digest digest = Sha256(token);
  std::shared_ptr<const TokenEntry> found;
  {
    absl::MutexLock lock(&mutex_);
    size_t at = tokens_.size();
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const bool equal =
          CRYPTO_memcmp(tokens_[i]->digest.data(), digest.data(), digest.size()) == 0;
      at = equal ? i : at;
    }
    if (at < tokens_.size()) found = tokens_[at];
  }
  if (found == nullptr) {
    return absl::UnauthenticatedError(
        "the server does not know this token: it was mistyped, removed, or is another server's");
  }
  const std::optional<Peer> peer = ParseGrpcPeer(origin.grpc_peer);
  H5M_RETURN_IF_ERROR(CheckExpiry(*found));
  if (origin.is_peer_known) H5M_RETURN_IF_ERROR(CheckAddress(*found, peer));
  return Principal{.name = found->name,
                   .rights = found->rights,
                   .issuer = Principal::Issuer::kToken,
                   .token = found,
                   .peer = peer};
}

absl::StatusOr<Principal> Authenticator::AuthenticateLogin(std::string_view token,
                                                           const CallerOrigin& origin) const {
  H5M_ASSIGN_OR_RETURN(std::shared_ptr<const TokenIdentity> identity, logins_->Find(token));
  return Principal{.name = identity->name,
                   .rights = Rights::All(),
                   .issuer = Principal::Issuer::kJwt,
                   .login = std::move(identity),
                   .peer = ParseGrpcPeer(origin.grpc_peer)};
}

absl::StatusOr<Principal> Authenticator::AuthenticateUser(uid_t uid) const {
  if (uid == kNamelessUid) {
    return absl::UnauthenticatedError(
        "your uid has no name on the server's host, or its name service fails: use a token, or try "
        "again later");
  }
  UnixUsers::Found user = users_.Find(uid);
  if (absl::IsNotFound(user.status())) return absl::UnauthenticatedError(user.status().message());
  H5M_RETURN_IF_ERROR(user.status());
  return Principal{.name = (*user)->name,
                   .rights = Rights::All(),
                   .issuer = Principal::Issuer::kUnix,
                   .uid = uid,
                   .user = *std::move(user)};
}

absl::StatusOr<Principal> Authenticator::AuthenticateMunge(std::string_view credential,
                                                           const CallerOrigin& origin) const {
  H5M_ASSIGN_OR_RETURN(std::shared_ptr<const MungeIdentity> identity, munge_->Find(credential));
  H5M_ASSIGN_OR_RETURN(Principal user, AuthenticateUser(identity->uid));
  user.issuer = Principal::Issuer::kMunge;
  user.munge = std::move(identity);
  user.peer = ParseGrpcPeer(origin.grpc_peer);
  return user;
}

absl::StatusOr<Principal> Authenticator::AuthenticateCertificate(const CallerOrigin& origin) const {
  H5M_ASSIGN_OR_RETURN(std::shared_ptr<const ClientIdentity> identity,
                       certificates_->Find(origin.certificate_pem));
  return Principal{.name = identity->name,
                   .rights = Rights::All(),
                   .issuer = Principal::Issuer::kCertificate,
                   .certificate = std::move(identity),
                   .peer = ParseGrpcPeer(origin.grpc_peer)};
}

std::shared_ptr<const AccessRule> Authenticator::RuleFor(const Principal& principal,
                                                         std::string_view file) const {
  const std::shared_ptr<const AccessIndex> index = rules();
  return {index, FindRule(*index, principal, file, nullptr).value_or(Decision{nullptr}).rule};
}

absl::StatusOr<Authenticator::Decision> Authenticator::FindRule(
    const AccessIndex& index, const Principal& principal, std::string_view file,
    const store::FileOwner* known) const {
  bool is_missing = false;
  const auto ask = [&]() -> absl::StatusOr<std::string> {
    absl::StatusOr<store::FileOwner> found = absl::UnavailableError("owners are not known");
    if (known != nullptr) {
      found = *known;
    } else if (find_owner_ != nullptr) {
      found = find_owner_(file);
    }
    // Of a cluster: the server that has the file knows its owner. For a moment it may be none.
    if (rpc::ElsewhereOf(found.status()).has_value() || rpc::IsNobodyServes(found.status())) {
      return found.status();
    }
    // The disk's own error would tell a stranger that the file exists.
    if (!found.ok()) {
      return absl::UnavailableError(
          StrCat(Short(file), ": the server cannot look up the file's owner now: try again"));
    }
    is_missing = !found->is_there;
    return is_missing ? OwnerName(principal) : found->owner;
  };
  H5M_ASSIGN_OR_RETURN(const AccessRule* const rule, index.Find(SubjectOf(principal), file, ask));
  return Decision{rule, is_missing && rule != nullptr && !rule->owners.empty()};
}

Rights Authenticator::RightsTo(const Principal& principal, std::string_view file,
                               const store::FileOwner* known) const {
  return FindRights(principal, file, known).value_or(FileRights()).now;
}

absl::StatusOr<Authenticator::FileRights> Authenticator::FindRights(
    const Principal& principal, std::string_view file, const store::FileOwner* known) const {
  if (principal.token != nullptr && !principal.token->limits.files.empty()) {
    if (!AnyGlobMatches(principal.token->limits.files, file)) return FileRights();
  }
  const std::shared_ptr<const AccessIndex> index = rules();
  if (index->empty()) return FileRights{principal.rights, principal.rights};
  H5M_ASSIGN_OR_RETURN(const Decision decision, FindRule(*index, principal, file, known));
  if (decision.rule == nullptr) return FileRights();
  const Rights allowed = principal.rights.And(decision.rule->allow);
  if (!decision.is_to_be_made) return FileRights{allowed, allowed};
  // No other rights: the next file of that name may be another owner's, and so may remains of the
  // former one.
  Rights making;
  making.Add(Right::kWrite);
  making.Add(Right::kDelete);
  return FileRights{allowed.And(making), allowed};
}

absl::Status Authenticator::Check(const Principal& principal, const Need& need,
                                  const store::FileOwner* known) const {
  if (need.file.empty()) return CheckRight(principal, need.right);
  H5M_ASSIGN_OR_RETURN(const FileRights found, FindRights(principal, need.file, known));
  const Rights rights = found.now;
  if (rights.Has(need.right)) return absl::OkStatus();
  if (found.once_made.Has(need.right)) {
    return absl::NotFoundError(StrCat("no file ", Short(need.file), "; see h5mirror ls"));
  }
  if (rights == principal.rights) return CheckRight(principal, need.right);
  if (!rights.empty()) return Lacks(principal, rights, need.file, need.right);
  return absl::NotFoundError(StrCat(Short(need.file), ": there is no such file, or ",
                                    CallerName(principal), " has no right to it"));
}

absl::Status Authenticator::CheckAllFiles(const Principal& principal, Right right) const {
  H5M_RETURN_IF_ERROR(CheckRight(principal, right));
  if (principal.token != nullptr && !principal.token->limits.files.empty()) {
    return absl::PermissionDeniedError(StrCat(CallerName(principal),
                                              " is for some files only, and this call needs \"",
                                              NameOf(right), "\" to all of them"));
  }
  const std::shared_ptr<const AccessIndex> index = rules();
  if (index->empty()) return absl::OkStatus();
  const AccessRule* const rule = index->FindForAll(SubjectOf(principal));
  if (rule != nullptr && rule->allow.Has(right)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      StrCat(CallerName(principal), " needs \"", NameOf(right),
             "\" to all files for this call, by an [[access]] table with files = \"**\""));
}

bool Authenticator::MayBelow(const Principal& principal, std::string_view directory) const {
  if (principal.token != nullptr && !principal.token->limits.files.empty()) {
    const auto& globs = principal.token->limits.files;
    if (std::none_of(globs.begin(), globs.end(), [directory](const std::string& glob) {
          return MayMatchBelow(glob, directory);
        })) {
      return false;
    }
  }
  const std::shared_ptr<const AccessIndex> index = rules();
  return index->empty() || index->MayBelow(SubjectOf(principal), directory);
}

absl::StatusOr<Principal> Authenticator::Renewed(const Principal& principal) const {
  switch (principal.issuer) {
    case Principal::Issuer::kNone:
      return principal;
    case Principal::Issuer::kUnix:
      // Without tables the server asks for tokens, or for nothing.
      if (has_rules()) return AuthenticateUser(principal.uid);
      return principal;
    case Principal::Issuer::kCertificate:
      H5M_RETURN_IF_ERROR(certificates_->StillValid(*principal.certificate));
      return principal;
    case Principal::Issuer::kJwt:
      H5M_RETURN_IF_ERROR(logins_->StillValid(*principal.login));
      return principal;
    case Principal::Issuer::kMunge: {
      H5M_RETURN_IF_ERROR(munge_->StillValid(*principal.munge));
      H5M_ASSIGN_OR_RETURN(const Principal user, AuthenticateUser(principal.uid));
      Principal now = principal;
      now.name = user.name;
      now.user = user.user;
      return now;
    }
    case Principal::Issuer::kToken:
      return RenewedToken(principal);
  }
  return principal;
}

absl::StatusOr<Principal> Authenticator::RenewedToken(const Principal& principal) const {
  Principal now = principal;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = std::find_if(tokens_.begin(), tokens_.end(), [&](const auto& token) {
      return token->digest == principal.token->digest;
    });
    if (found == tokens_.end()) {
      return absl::UnauthenticatedError(
          StrCat("token \"", principal.name,
                 "\" was removed from the server's tokens: ask its operator for another"));
    }
    now.token = *found;
  }
  now.rights = now.token->rights;
  H5M_RETURN_IF_ERROR(CheckExpiry(*now.token));
  H5M_RETURN_IF_ERROR(CheckAddress(*now.token, now.peer));
  return now;
}

absl::Status Authenticator::StillMay(const Principal& principal,
                                     absl::Span<const Need> needs) const {
  const absl::StatusOr<Principal> now = Renewed(principal);
  if (!now.ok() && !absl::IsUnavailable(now.status())) return now.status();
  // A right that cannot be looked up must not hide another one that is missing.
  absl::Status result = now.status();
  for (const Need& need : needs) {
    absl::Status may = Check(now.ok() ? *now : principal, need);
    if (!may.ok() && !absl::IsUnavailable(may)) return may;
    result.Update(may);
  }
  return result;
}

size_t Authenticator::token_count() const {
  absl::MutexLock lock(&mutex_);
  return tokens_.size();
}

}  // namespace h5mirror::server
