#include "server/testing/json_web_issuer.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/strings/escaping.h"
#include "base/strings.h"
#include "openssl/core_names.h"
#include "openssl/ec.h"
#include "openssl/hmac.h"
#include "openssl/rsa.h"

namespace h5mirror::server {
namespace {

using nlohmann::json;
using DigestPtr = std::unique_ptr<EVP_MD_CTX, Freer<EVP_MD_CTX_free>>;
using SignaturePtr = std::unique_ptr<ECDSA_SIG, Freer<ECDSA_SIG_free>>;

std::string BytesOf(const BIGNUM* number, size_t size_bytes) {
  std::string bytes(size_bytes > 0 ? size_bytes : static_cast<size_t>(BN_num_bytes(number)), '\0');
  EXPECT_GT(BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()),
                         static_cast<int>(bytes.size())),
            0);
  return bytes;
}

size_t BytesOfCurve(const std::string& kind) {
  if (kind == "P-256") return 32;
  return kind == "P-384" ? 48 : 66;
}

// OpenSSL's DER as the two numbers that RFC 7518, 3.4 wants.
std::string RawOf(const std::string& der, size_t size_bytes) {
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const SignaturePtr signature(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())));
  return BytesOf(ECDSA_SIG_get0_r(signature.get()), size_bytes) +
         BytesOf(ECDSA_SIG_get0_s(signature.get()), size_bytes);
}

}  // namespace

const SigningKey& SharedRsaKey() {
  static const auto* const key = new SigningKey("r", "RSA");
  return *key;
}

std::string Base64Url(std::string_view bytes) { return absl::WebSafeBase64Escape(ToAbsl(bytes)); }

std::string Unsigned(const json& header, const json& claims) {
  return Base64Url(header.dump()) + "." + Base64Url(claims.dump());
}

std::string SignByHs256(const json& claims, const std::string& secret, const std::string& key_id) {
  const std::string text = Unsigned({{"alg", "HS256"}, {"kid", key_id}}, claims);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size);
  return text + "." + Base64Url({reinterpret_cast<const char*>(digest), size});
}

std::string KeySetOf(const std::vector<const SigningKey*>& keys) {
  json list = json::array();
  for (const SigningKey* key : keys) list.push_back(key->Public());
  return json{{"keys", list}}.dump();
}

SigningKey::SigningKey(std::string id, const std::string& kind, size_t bits)
    : id_(std::move(id)),
      kind_(kind),
      key_(kind == "RSA" ? EVP_RSA_gen(static_cast<unsigned>(bits)) : EVP_EC_gen(kind.c_str())) {
  EXPECT_NE(key_, nullptr) << kind;
}

std::string SigningKey::Number(const char* name, size_t size_bytes) const {
  BIGNUM* number = nullptr;
  EXPECT_EQ(EVP_PKEY_get_bn_param(key_.get(), name, &number), 1) << name;
  const NumberPtr owner(number);
  return Base64Url(BytesOf(number, size_bytes));
}

json SigningKey::Public() const {
  if (kind_ == "RSA") {
    return {{"kty", "RSA"},
            {"kid", id_},
            {"use", "sig"},
            {"n", Number(OSSL_PKEY_PARAM_RSA_N, 0)},
            {"e", Number(OSSL_PKEY_PARAM_RSA_E, 0)}};
  }
  const size_t size_bytes = BytesOfCurve(kind_);
  return {{"kty", "EC"},
          {"kid", id_},
          {"crv", kind_},
          {"x", Number(OSSL_PKEY_PARAM_EC_PUB_X, size_bytes)},
          {"y", Number(OSSL_PKEY_PARAM_EC_PUB_Y, size_bytes)}};
}

std::string SigningKey::SignBytes(const std::string& text, const std::string& algorithm) const {
  const std::string hash = "SHA" + algorithm.substr(2);
  const DigestPtr digest(EVP_MD_CTX_new());
  EVP_PKEY_CTX* context = nullptr;
  EXPECT_EQ(EVP_DigestSignInit(digest.get(), &context, EVP_get_digestbyname(hash.c_str()), nullptr,
                               key_.get()),
            1)
      << hash;
  if (algorithm.starts_with("PS")) {
    EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING);
    EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST);
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  size_t size = 0;
  EXPECT_EQ(EVP_DigestSign(digest.get(), nullptr, &size, bytes, text.size()), 1);
  std::string signature(size, '\0');
  EXPECT_EQ(EVP_DigestSign(digest.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                           bytes, text.size()),
            1);
  signature.resize(size);
  return kind_ == "RSA" ? signature : RawOf(signature, BytesOfCurve(kind_));
}

std::string SigningKey::Sign(const json& claims, const std::string& algorithm,
                             const json& header) const {
  json whole = {{"alg", algorithm}, {"typ", "JWT"}};
  if (!id_.empty()) whole["kid"] = id_;
  whole.update(header);
  const std::string text = Unsigned(whole, claims);
  return text + "." + Base64Url(SignBytes(text, algorithm));
}

std::string SigningKey::PublicPem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  EXPECT_EQ(PEM_write_bio_PUBKEY(bio.get(), key_.get()), 1);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

}  // namespace h5mirror::server
