#include "server/door/auth.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "openssl/crypto.h"

namespace h5mirror::server {
namespace {

std::string_view NameOf(Right right) {
  switch (right) {
    case Right::kRead:
      return "read";
    case Right::kWrite:
      return "write";
    case Right::kAdmin:
      return "admin";
  }
  return "?";
}

}  // namespace

absl::Status CheckRight(const Principal& principal, Right right) {
  if (principal.rights.Has(right)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      StrCat("token \"", principal.name, "\" has the rights \"", principal.rights.ToString(),
             "\" and this call needs \"", NameOf(right), "\": ask the server's operator for one"));
}

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::Load(
    const std::filesystem::path& path) {
  auto authenticator = absl::WrapUnique(new Authenticator(path));
  H5M_RETURN_IF_ERROR(authenticator->Reload());
  return authenticator;
}

absl::Status Authenticator::Reload() {
  if (path_.empty()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(std::vector<TokenEntry> tokens, ReadTokenFile(path_));
  if (tokens.empty()) {
    return absl::InvalidArgumentError(
        StrCat("tokens_file ", path_.string(), " holds no token: run `h5mirrord token add NAME`"));
  }
  absl::MutexLock lock(&mutex_);
  tokens_ = std::move(tokens);
  return absl::OkStatus();
}

absl::StatusOr<Principal> Authenticator::Authenticate(
    std::optional<std::string_view> authorization) const {
  if (path_.empty()) return Principal{"", Rights::All()};
  constexpr std::string_view kScheme = "Bearer ";
  if (!authorization.has_value()) {
    return absl::UnauthenticatedError(
        "this server wants a token: set token=@FILE, or put it into ~/.config/h5mirror/token");
  }
  if (!absl::StartsWithIgnoreCase(ToAbsl(*authorization), ToAbsl(kScheme))) {
    return absl::UnauthenticatedError("the authorization header is not \"Bearer TOKEN\"");
  }
  const Sha256Digest digest = Sha256(authorization->substr(kScheme.size()));
  absl::MutexLock lock(&mutex_);
  const TokenEntry* found = nullptr;
  for (const TokenEntry& token : tokens_) {
    const bool equal = CRYPTO_memcmp(token.digest.data(), digest.data(), digest.size()) == 0;
    found = equal ? &token : found;
  }
  if (found == nullptr) {
    return absl::UnauthenticatedError(
        "the server does not know this token: it was mistyped, removed, or is another server's");
  }
  return Principal{found->name, found->rights, found->digest};
}

absl::Status Authenticator::StillMay(const Principal& principal, std::optional<Right> right) const {
  if (path_.empty()) return absl::OkStatus();
  Principal now = principal;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = std::find_if(tokens_.begin(), tokens_.end(), [&](const TokenEntry& token) {
      return token.digest == principal.digest;
    });
    if (found == tokens_.end()) {
      return absl::UnauthenticatedError(
          StrCat("token \"", principal.name,
                 "\" was removed from the server's tokens: ask its operator for another"));
    }
    now.rights = found->rights;
  }
  return right.has_value() ? CheckRight(now, *right) : absl::OkStatus();
}

size_t Authenticator::token_count() const {
  absl::MutexLock lock(&mutex_);
  return tokens_.size();
}

}  // namespace h5mirror::server
