#include "server/door/json_web_keys.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "openssl/err.h"
#include "server/door/strict_json.h"
#include "server/settings/secret_file.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

using nlohmann::json;

constexpr size_t kKeysMax = 256;
constexpr size_t kIdBytesMax = 256;
constexpr size_t kLeftOutMax = 16;  // So many reasons are told.
// RFC 7518, 3.3 wants 2048 bits. A longer modulus costs the server time that a stranger chooses
// when to take.
constexpr size_t kRsaBitsMin = 2048;
constexpr size_t kRsaBitsMax = 8192;
constexpr size_t kRsaExponentBytesMax = 8;

struct KeyReleaser {
  void operator()(const cjose_jwk_t* key) const {
    cjose_jwk_release(const_cast<cjose_jwk_t*>(key));
  }
};

absl::Status NoKey(std::string_view why) { return absl::InvalidArgumentError(ToAbsl(why)); }

// A number's bytes without zeros before it, and its base64url again: one form for each number.
struct Number {
  std::string bytes;
  std::string text;

  size_t bits() const {
    size_t bits = bytes.size() * 8;
    for (uint8_t bit = 0x80; bit != 0 && !bytes.empty(); bit >>= 1, --bits) {
      if ((static_cast<uint8_t>(bytes[0]) & bit) != 0) break;
    }
    return bits;
  }
};

// `size_bytes` > 0: exactly so many, zeros and all.
absl::StatusOr<Number> NumberMember(const json& key, const char* name, size_t size_bytes) {
  const std::optional<std::string> text = TextMember(key, name);
  if (!text) return NoKey(StrCat("\"", std::string_view(name), "\" is missing"));
  const absl::StatusOr<std::string> decoded = DecodeBase64Url(*text);
  if (!decoded.ok()) return NoKey(StrCat("\"", std::string_view(name), "\" is no base64url"));
  Number number{*decoded, ""};
  if (size_bytes > 0 && number.bytes.size() != size_bytes) {
    return NoKey(StrCat("\"", std::string_view(name), "\" has not ", size_bytes, " bytes"));
  }
  if (size_bytes == 0) number.bytes.erase(0, number.bytes.find_first_not_of('\0'));
  number.text = absl::WebSafeBase64Escape(number.bytes);
  return number;
}

// Fills kind, thumbprint and key from members that are checked. The names of `members` are in
// order, as RFC 7638 wants it.
absl::Status Import(JsonWebKey::Kind kind, const json& members, JsonWebKey* key) {
  const std::string text = members.dump();
  cjose_err error{};
  cjose_jwk_t* const imported = cjose_jwk_import(text.data(), text.size(), &error);
  ERR_clear_error();
  if (imported == nullptr) return NoKey("it is no point of its curve, or no key at all");
  key->key = std::shared_ptr<const cjose_jwk_t>(imported, KeyReleaser());
  key->kind = kind;
  key->thumbprint = Sha256(text);
  return absl::OkStatus();
}

absl::Status ImportRsa(const json& from, JsonWebKey* key) {
  H5M_ASSIGN_OR_RETURN(const Number modulus, NumberMember(from, "n", 0));
  H5M_ASSIGN_OR_RETURN(const Number exponent, NumberMember(from, "e", 0));
  const size_t bits = modulus.bits();
  if (bits < kRsaBitsMin || bits > kRsaBitsMax) {
    return NoKey(
        StrCat("RSA keys have ", kRsaBitsMin, " to ", kRsaBitsMax, " bits, and it has ", bits));
  }
  const bool is_exponent = !exponent.bytes.empty() &&
                           exponent.bytes.size() <= kRsaExponentBytesMax &&
                           (exponent.bytes.back() & 1) != 0 && exponent.bits() > 1;
  if (!is_exponent) return NoKey("\"e\" is no exponent of RSA");
  return Import(JsonWebKey::Kind::kRsa, {{"e", exponent.text}, {"kty", "RSA"}, {"n", modulus.text}},
                key);
}

absl::Status ImportEc(const json& from, JsonWebKey* key) {
  const std::string curve = TextMember(from, "crv").value_or("");
  const bool is_p256 = curve == "P-256";
  if (!is_p256 && curve != "P-384") return NoKey("its curve is neither P-256 nor P-384");
  const size_t size_bytes = is_p256 ? 32 : 48;
  H5M_ASSIGN_OR_RETURN(const Number x, NumberMember(from, "x", size_bytes));
  H5M_ASSIGN_OR_RETURN(const Number y, NumberMember(from, "y", size_bytes));
  return Import(is_p256 ? JsonWebKey::Kind::kP256 : JsonWebKey::Kind::kP384,
                {{"crv", curve}, {"kty", "EC"}, {"x", x.text}, {"y", y.text}}, key);
}

// Whether the issuer means the key for signatures. Without a word about it, it may be used so.
bool IsForSignatures(const json& key) {
  if (key.contains("use") && TextMember(key, "use") != "sig") return false;
  const auto operations = key.find("key_ops");
  if (operations == key.end()) return true;
  return operations->is_array() &&
         std::find(operations->begin(), operations->end(), json("verify")) != operations->end();
}

absl::StatusOr<JsonWebKey> ParseKey(const json& from) {
  if (!from.is_object()) return NoKey("it is no object");
  JsonWebKey key;
  key.id = TextMember(from, "kid").value_or("");
  key.algorithm = TextMember(from, "alg").value_or("");
  if (key.id.size() > kIdBytesMax) return NoKey("its \"kid\" is too long");
  if (!IsForSignatures(from)) return NoKey("it is not for signatures");
  if (from.contains("d") || from.contains("k")) {
    return NoKey("it is a secret key: put the issuer's public keys there, and make new ones");
  }
  const std::string type = TextMember(from, "kty").value_or("");
  if (type != "RSA" && type != "EC") return NoKey("it is neither RSA nor EC");
  H5M_RETURN_IF_ERROR(type == "RSA" ? ImportRsa(from, &key) : ImportEc(from, &key));
  if (!key.algorithm.empty() && !key.Fits(key.algorithm)) {
    return NoKey("its \"alg\" is not one that h5mirrord takes of such a key");
  }
  return key;
}

std::string_view HashOf(std::string_view algorithm) {
  return algorithm.size() == 5 ? algorithm.substr(2) : std::string_view();
}

bool AreSame(const std::vector<JsonWebKey>& left, const std::vector<JsonWebKey>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const JsonWebKey& a, const JsonWebKey& b) {
                      return std::tie(a.id, a.algorithm, a.thumbprint) ==
                             std::tie(b.id, b.algorithm, b.thumbprint);
                    });
}

}  // namespace

bool JsonWebKey::Fits(std::string_view wanted) const {
  if (!algorithm.empty() && wanted != algorithm) return false;
  if (kind == Kind::kP256) return wanted == "ES256";
  if (kind == Kind::kP384) return wanted == "ES384";
  const std::string_view hash = HashOf(wanted);
  return (wanted.starts_with("RS") || wanted.starts_with("PS")) &&
         (hash == "256" || hash == "384" || hash == "512");
}

bool IsBase64Url(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  });
}

absl::StatusOr<std::string> DecodeBase64Url(std::string_view text) {
  std::string decoded;
  if (!IsBase64Url(text) || !absl::WebSafeBase64Unescape(ToAbsl(text), &decoded)) {
    return absl::InvalidArgumentError("no base64url");
  }
  return decoded;
}

absl::StatusOr<JsonWebKeySet> ParseJsonWebKeys(std::string_view text, std::string_view source) {
  const std::optional<json> object = ParseStrictJson(text);
  const auto bad = [&](std::string_view why) {
    return absl::InvalidArgumentError(StrCat(source, ": ", why));
  };
  if (!object || !object->contains("keys") || !object->at("keys").is_array()) {
    return bad("is no JWKS, {\"keys\": [...]}: fetch it from the issuer's jwks_uri");
  }
  const json& keys = object->at("keys");
  if (keys.size() > kKeysMax) return bad(StrCat("has more than ", kKeysMax, " keys"));
  JsonWebKeySet set;
  for (size_t i = 0; i < keys.size(); ++i) {
    absl::StatusOr<JsonWebKey> key = ParseKey(keys[i]);
    if (key.ok()) {
      set.keys.push_back(*std::move(key));
    } else if (set.left_out.size() < kLeftOutMax) {
      const std::string id =
          keys[i].is_object() ? TextMember(keys[i], "kid").value_or("") : std::string();
      set.left_out.push_back(StrCat(source, ": key ", i + 1, ", kid ",
                                    Quoted(Printable(id.substr(0, kIdBytesMax))),
                                    ", does not count: ", ToStd(key.status().message())));
    }
  }
  return set;
}

absl::StatusOr<std::unique_ptr<JsonWebKeys>> JsonWebKeys::Load(const std::filesystem::path& path) {
  auto loaded = absl::WrapUnique(new JsonWebKeys(path));
  const State state = loaded->Look();
  H5M_ASSIGN_OR_RETURN(JsonWebKeySet set, loaded->Read());
  if (set.keys.empty()) {
    return absl::InvalidArgumentError(
        StrCat("jwt_keys = \"", path.string(), "\": holds no key of a kind that signs tokens here",
               set.left_out.empty() ? "" : StrCat("; ", set.left_out.front())));
  }
  const absl::MutexLock reload_lock(&loaded->reload_mutex_);
  H5M_RETURN_IF_ERROR(loaded->Take(std::move(set), state).status());
  return loaded;
}

absl::StatusOr<JsonWebKeySet> JsonWebKeys::Read() const {
  const std::string source = StrCat("jwt_keys = \"", path_.string(), "\"");
  const absl::StatusOr<std::string> text = ReadGuardedFile(path_);
  if (!text.ok()) {
    return absl::Status(text.status().code(), StrCat(source, ": ", text.status().message()));
  }
  return ParseJsonWebKeys(*text, source);
}

JsonWebKeys::State JsonWebKeys::Look() const {
  struct stat info {};
  if (stat(path_.c_str(), &info) != 0) return {};
  const auto ns = [](const timespec& time) {
    return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  };
  return {.device = info.st_dev,
          .inode = info.st_ino,
          .size_bytes = info.st_size,
          .modified_ns = ns(info.st_mtim),
          .changed_ns = ns(info.st_ctim)};
}

absl::StatusOr<bool> JsonWebKeys::Take(absl::StatusOr<JsonWebKeySet> set, const State& state) {
  absl::MutexLock lock(&mutex_);
  state_ = state;
  if (!set.ok()) {
    if (const std::string error = set.status().ToString(); error != last_error_) {
      last_error_ = error;
      spdlog::error("the keys of tokens stay as they were: {}", error);
    }
    return set.status();
  }
  last_error_.clear();
  if (AreSame(*keys_, set->keys)) return false;
  for (const std::string& why : set->left_out) spdlog::warn("{}", why);
  spdlog::info("jwt_keys = \"{}\": {} keys count", path_.string(), set->keys.size());
  keys_ = std::make_shared<const std::vector<JsonWebKey>>(std::move(set->keys));
  return true;
}

absl::StatusOr<bool> JsonWebKeys::Reload() {
  const absl::MutexLock reload_lock(&reload_mutex_);
  const State state = Look();
  return Take(Read(), state);
}

absl::StatusOr<bool> JsonWebKeys::ReloadIfChanged() {
  const absl::MutexLock reload_lock(&reload_mutex_);
  const State state = Look();
  {
    absl::MutexLock lock(&mutex_);
    if (state == state_) return false;
  }
  return Take(Read(), state);
}

JsonWebKeys::Keys JsonWebKeys::keys() const {
  absl::MutexLock lock(&mutex_);
  return keys_;
}

bool JsonWebKeys::Has(const Sha256Digest& thumbprint) const {
  const Keys now = keys();
  return std::any_of(now->begin(), now->end(),
                     [&](const JsonWebKey& key) { return key.thumbprint == thumbprint; });
}

}  // namespace h5mirror::server
