// An issuer of tokens, for tests. Signs by OpenSSL, so that it shares no code with the verifying
// side.
#ifndef H5MIRROR_SERVER_TESTING_JSON_WEB_ISSUER_H_
#define H5MIRROR_SERVER_TESTING_JSON_WEB_ISSUER_H_

#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"
#include "server/settings/openssl_pointers.h"

namespace h5mirror::server {

// One key of an issuer.
class SigningKey {
 public:
  // `kind`: "RSA" with 2048 bits unless `bits` are given, "P-256", "P-384" or "P-521".
  explicit SigningKey(std::string id, const std::string& kind, size_t bits = 2048);

  // The public key as a member of a JWKS.
  nlohmann::json Public() const;
  // "HEADER.CLAIMS.SIGNATURE" by `algorithm`; `header` adds members, or replaces those there are.
  std::string Sign(const nlohmann::json& claims, const std::string& algorithm,
                   const nlohmann::json& header = nlohmann::json::object()) const;
  // The public key, PEM. A forger would use it as the secret of HS256.
  std::string PublicPem() const;
  const std::string& id() const { return id_; }

 private:
  std::string Number(const char* name, size_t size_bytes) const;
  std::string SignBytes(const std::string& text, const std::string& algorithm) const;

  const std::string id_;
  const std::string kind_;
  const KeyPtr key_;
};

// An RSA key with the id "r": one for all tests of a process.
const SigningKey& SharedRsaKey();

std::string Base64Url(std::string_view bytes);
// The two first parts of a token, without a signature.
std::string Unsigned(const nlohmann::json& header, const nlohmann::json& claims);
// A token by a shared secret.
std::string SignByHs256(const nlohmann::json& claims, const std::string& secret,
                        const std::string& key_id);
// {"keys": [...]}
std::string KeySetOf(const std::vector<const SigningKey*>& keys);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_TESTING_JSON_WEB_ISSUER_H_
