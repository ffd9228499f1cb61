#include "server/door/json_web_tokens.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "cjose/jws.h"
#include "openssl/err.h"
#include "server/door/strict_json.h"

namespace h5mirror::server {
namespace {

using nlohmann::json;

constexpr size_t kTokenBytesMax = 16 << 10;
constexpr size_t kNameBytesMax = 128;
constexpr size_t kGroupsMax = 1024;
constexpr size_t kGroupBytesMax = 256;
// The most keys that are tried for a token without a "kid".
constexpr size_t kKeysTriedMax = 8;
// The clocks of issuer and server may differ by this. Not for "exp", which has the grace.
constexpr absl::Duration kLeeway = absl::Minutes(1);
constexpr double kTimeMax = 253402300799;  // The year 9999.
// A name that begins so would be another kind of caller in an [[access]] table.
constexpr std::string_view kIssuerPrefixes[] = {"token:", "unix:", "cert:", "jwt:", "munge:"};
constexpr size_t kIdShownMax = 64;

struct JwsReleaser {
  void operator()(cjose_jws_t* jws) const { cjose_jws_release(jws); }
};

absl::Status Refused(std::string_view why) {
  return absl::UnauthenticatedError(StrCat("the token of your login does not count: ", why));
}

absl::Status Expired(absl::Time when) {
  return absl::UnauthenticatedError(StrCat(
      "the token of your login has expired, at ",
      absl::FormatTime(absl::RFC3339_sec, when, absl::UTCTimeZone()), ": run `h5mirror login`"));
}

// The three parts; empty ones: not of this form.
std::array<std::string_view, 3> PartsOf(std::string_view token) {
  const size_t first = token.find('.');
  const size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos) return {};
  return {token.substr(0, first), token.substr(first + 1, second - first - 1),
          token.substr(second + 1)};
}

std::optional<json> DecodeObject(std::string_view part) {
  const absl::StatusOr<std::string> text = DecodeBase64Url(part);
  return text.ok() ? ParseStrictJson(*text) : std::nullopt;
}

struct Header {
  std::string algorithm;
  std::string key_id;  // empty: none
};

absl::StatusOr<Header> ReadHeader(std::string_view part) {
  const std::optional<json> header = DecodeObject(part);
  if (!header) return Refused("its header is no JSON object");
  // Extensions that must be understood (RFC 7515, 4.1.11). There are none here.
  if (header->contains("crit")) return Refused("its header has \"crit\"");
  const std::optional<std::string> algorithm = TextMember(*header, "alg");
  if (!algorithm) return Refused("its header has no \"alg\"");
  if (!header->contains("kid")) return Header{*algorithm, ""};
  const std::optional<std::string> key_id = TextMember(*header, "kid");
  if (!key_id || key_id->empty()) return Refused("its \"kid\" is no text");
  return Header{*algorithm, *key_id};
}

// nullopt: the claim is not there. kUnauthenticated: it is no time.
absl::StatusOr<std::optional<absl::Time>> TimeClaim(const json& claims, const char* name) {
  const auto claim = claims.find(name);
  if (claim == claims.end()) return std::nullopt;
  const double seconds = claim->is_number() ? claim->get<double>() : -1;
  if (!(seconds >= 0 && seconds <= kTimeMax)) {
    return Refused(StrCat("its \"", std::string_view(name), "\" is no time"));
  }
  return absl::FromUnixSeconds(static_cast<int64_t>(std::floor(seconds)));
}

bool NamesAudience(const json& claims, const std::string& audience) {
  const auto claim = claims.find("aud");
  if (claim == claims.end()) return false;
  if (!claim->is_array()) return *claim == json(audience);
  return std::find(claim->begin(), claim->end(), json(audience)) != claim->end();
}

// The time at which the token expires.
absl::StatusOr<absl::Time> CheckTimes(const json& claims) {
  const absl::Time now = absl::Now();
  H5M_ASSIGN_OR_RETURN(const std::optional<absl::Time> expires, TimeClaim(claims, "exp"));
  if (!expires) return Refused("it has no \"exp\"");
  if (now >= *expires) return Expired(*expires);
  H5M_ASSIGN_OR_RETURN(const std::optional<absl::Time> begins, TimeClaim(claims, "nbf"));
  H5M_ASSIGN_OR_RETURN(const std::optional<absl::Time> issued, TimeClaim(claims, "iat"));
  if (begins && now + kLeeway < *begins) return Refused("it is not valid yet (\"nbf\")");
  if (issued && now + kLeeway < *issued) {
    return Refused("it was issued in the future (\"iat\"): compare the server's clock");
  }
  return *expires;
}

absl::StatusOr<std::string> NameIn(const json& claims, const std::string& claim) {
  const std::optional<std::string> name = TextMember(claims, claim.c_str());
  if (!name) return Refused(StrCat("it has no text \"", claim, "\" to name its user"));
  const auto is_plain = [](char c) { return c > ' ' && c <= '~' && c != '/'; };
  const bool is_name = !name->empty() && name->size() <= kNameBytesMax && *name != "." &&
                       *name != ".." && std::all_of(name->begin(), name->end(), is_plain);
  const bool is_other =
      std::any_of(std::begin(kIssuerPrefixes), std::end(kIssuerPrefixes),
                  [&](std::string_view prefix) { return name->starts_with(prefix); });
  if (is_name && !is_other) return *name;
  return Refused(StrCat("its \"", claim, "\" is no name here: 1 to ", kNameBytesMax,
                        " visible ASCII characters without '/', and no \"unix:\" or its like "
                        "before"));
}

absl::StatusOr<std::vector<std::string>> GroupsIn(const json& claims, const std::string& claim) {
  std::vector<std::string> groups;
  const auto found = claims.find(claim);
  if (found == claims.end() || found->is_null()) return groups;
  if (found->is_array() && found->size() > kGroupsMax) {
    return Refused(StrCat("it has more than ", kGroupsMax, " \"", claim, "\""));
  }
  const auto add = [&groups](const json& each) {
    const std::string* const text = each.get_ptr<const std::string*>();  // nullptr: it is no text.
    if (text == nullptr || text->size() > kGroupBytesMax) return false;
    groups.push_back(*text);
    return true;
  };
  if (found->is_array() ? std::all_of(found->begin(), found->end(), add) : add(*found)) {
    return groups;
  }
  return Refused(
      StrCat("one of its \"", claim, "\" is no text of at most ", kGroupBytesMax, " bytes"));
}

bool VerifiesWith(std::string_view token, const JsonWebKey& key) {
  cjose_err error{};
  const std::unique_ptr<cjose_jws_t, JwsReleaser> jws(
      cjose_jws_import(token.data(), token.size(), &error));
  const bool verifies = jws != nullptr && cjose_jws_verify(jws.get(), key.key.get(), &error);
  ERR_clear_error();
  return verifies;
}

// The key that has signed the token.
absl::StatusOr<const JsonWebKey*> FindSigner(std::string_view token, const Header& header,
                                             const std::vector<JsonWebKey>& keys) {
  size_t tried = 0;
  for (const JsonWebKey& key : keys) {
    if (!header.key_id.empty() && key.id != header.key_id) continue;
    if (!key.Fits(header.algorithm)) continue;
    if (tried == kKeysTriedMax) break;
    ++tried;
    if (VerifiesWith(token, key)) return &key;
  }
  if (tried > 0) return Refused("its signature is wrong: run `h5mirror login`");
  const std::string key_id = Quoted(Printable(header.key_id.substr(0, kIdShownMax)));
  const std::string algorithm = Quoted(Printable(header.algorithm.substr(0, kIdShownMax)));
  return Refused(StrCat("the server's jwt_keys have no key with the kid ", key_id, " for ",
                        algorithm, ": run `h5mirror login`, or ask the server's operator"));
}

}  // namespace

bool IsJsonWebToken(std::string_view token) {
  const auto parts = PartsOf(token);
  return std::all_of(parts.begin(), parts.end(), IsBase64Url);
}

absl::StatusOr<std::unique_ptr<JsonWebTokens>> JsonWebTokens::Load(
    const JsonWebTokenSettings& settings) {
  H5M_ASSIGN_OR_RETURN(std::unique_ptr<JsonWebKeys> keys, JsonWebKeys::Load(settings.keys));
  return absl::WrapUnique(new JsonWebTokens(settings, std::move(keys)));
}

// Cheap checks come first, so that a stranger's useless tokens cost no verification of a signature.
absl::StatusOr<TokenIdentity> JsonWebTokens::Verify(std::string_view token) const {
  const std::array<std::string_view, 3> parts = PartsOf(token);
  if (token.size() > kTokenBytesMax || !IsJsonWebToken(token)) {
    return Refused(StrCat("it is no JWT of at most ", kTokenBytesMax, " bytes"));
  }
  H5M_ASSIGN_OR_RETURN(const Header header, ReadHeader(parts[0]));
  const std::optional<json> claims = DecodeObject(parts[1]);
  if (!claims) return Refused("its claims are no JSON object");
  if (TextMember(*claims, "iss") != settings_.issuer) {
    return Refused("its \"iss\" is not the issuer that the server has (jwt_issuer)");
  }
  if (!NamesAudience(*claims, settings_.audience)) {
    return Refused(
        "its \"aud\" does not have the server's audience (jwt_audience): ask the "
        "issuer for a token that is for h5mirror");
  }
  TokenIdentity identity{};
  H5M_ASSIGN_OR_RETURN(identity.expires, CheckTimes(*claims));
  H5M_ASSIGN_OR_RETURN(identity.name, NameIn(*claims, settings_.user_claim));
  identity.ends = identity.expires + settings_.grace;
  const JsonWebKeys::Keys keys = keys_->keys();
  H5M_ASSIGN_OR_RETURN(const JsonWebKey* const signer, FindSigner(token, header, *keys));
  identity.thumbprint = signer->thumbprint;
  H5M_ASSIGN_OR_RETURN(identity.groups, GroupsIn(*claims, settings_.groups_claim));
  return identity;
}

absl::StatusOr<std::shared_ptr<const TokenIdentity>> JsonWebTokens::Find(
    std::string_view token) const {
  const Sha256Digest digest = Sha256(token);
  std::shared_ptr<const TokenIdentity> identity = known_.Find(digest);
  if (identity != nullptr && keys_->Has(identity->thumbprint)) {
    if (absl::Now() >= identity->expires) return Expired(identity->expires);
    return identity;
  }
  H5M_ASSIGN_OR_RETURN(TokenIdentity verified, Verify(token));
  identity = std::make_shared<const TokenIdentity>(std::move(verified));
  known_.Remember(digest, identity, absl::Now());
  return identity;
}

absl::Status JsonWebTokens::StillValid(const TokenIdentity& identity) const {
  if (absl::Now() >= identity.ends) return Expired(identity.expires);
  if (keys_->Has(identity.thumbprint)) return absl::OkStatus();
  return Refused("its key was taken out of the server's jwt_keys: run `h5mirror login`");
}

absl::Time JsonWebTokens::NextExpiry() const { return known_.NextEnd(absl::Now()); }

}  // namespace h5mirror::server
