#include "server/notify/signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "absl/strings/escaping.h"
#include "base/strings.h"

namespace h5mirror::server {

std::string HmacSha256Hex(std::string_view key, std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), size));
}

std::string SignatureOf(std::string_view key, std::string_view body, absl::Time time) {
  const std::string at = StrCat(absl::ToUnixSeconds(time));
  return StrCat("t=", at, ",v1=", HmacSha256Hex(key, StrCat(at, ".", body)));
}

}  // namespace h5mirror::server
