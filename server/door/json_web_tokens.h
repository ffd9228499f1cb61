// Tokens that an issuer signs (JWTs, RFC 7519): names and groups by the site's single sign-on,
// verified without a question to it.
#ifndef H5MIRROR_SERVER_DOOR_JSON_WEB_TOKENS_H_
#define H5MIRROR_SERVER_DOOR_JSON_WEB_TOKENS_H_

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/door/json_web_keys.h"
#include "server/door/known_identities.h"
#include "server/settings/token_file.h"

namespace h5mirror::server {

// A verified token.
struct TokenIdentity {
  std::string name;
  std::vector<std::string> groups;
  absl::Time expires;         // "exp": no call begins from then on
  absl::Time ends;            // running calls end: `expires` and the grace
  Sha256Digest thumbprint{};  // of the key that has signed it
};

struct JsonWebTokenSettings {
  std::filesystem::path keys;
  std::string issuer;
  std::string audience;
  std::string user_claim = "sub";
  std::string groups_claim = "groups";
  absl::Duration grace = absl::ZeroDuration();
};

// Whether `token` has the form of a JWT: three parts of base64url, with dots between.
bool IsJsonWebToken(std::string_view token);

// Thread-safe.
class JsonWebTokens {
 public:
  // Errors: as JsonWebKeys::Load().
  static absl::StatusOr<std::unique_ptr<JsonWebTokens>> Load(const JsonWebTokenSettings& settings);

  // As those of JsonWebKeys. A token whose key has gone is refused from then on.
  absl::StatusOr<bool> Reload() { return keys_->Reload(); }
  absl::StatusOr<bool> ReloadIfChanged() { return keys_->ReloadIfChanged(); }

  // The identity in a token. No lock is held while a signature is verified; a token that was
  // verified before is looked up.
  // kUnauthenticated: not a JWT, another issuer or audience, not valid yet or no longer, or not
  // signed by a key that counts. Messages never show the token.
  absl::StatusOr<std::shared_ptr<const TokenIdentity>> Find(std::string_view token) const;
  // For the calls that run by a token of Find(). kUnauthenticated: it has ended, or its key has
  // gone.
  absl::Status StillValid(const TokenIdentity& identity) const;
  // When the next token that was found ends, or one of the last 2 s did:
  // KnownIdentities::NextEnd().
  absl::Time NextExpiry() const;

 private:
  JsonWebTokens(JsonWebTokenSettings settings, std::unique_ptr<JsonWebKeys> keys)
      : settings_(std::move(settings)), keys_(std::move(keys)) {}
  absl::StatusOr<TokenIdentity> Verify(std::string_view token) const;

  const JsonWebTokenSettings settings_;
  const std::unique_ptr<JsonWebKeys> keys_;
  mutable KnownIdentities<TokenIdentity, &TokenIdentity::ends> known_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_JSON_WEB_TOKENS_H_
