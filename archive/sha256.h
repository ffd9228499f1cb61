// SHA-256 and its HMAC, by OpenSSL.
#ifndef H5MIRROR_ARCHIVE_SHA256_H_
#define H5MIRROR_ARCHIVE_SHA256_H_

#include <memory>
#include <string>
#include <string_view>

namespace h5mirror::archive {

// The SHA-256 of bytes that come in pieces. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;

  void Update(std::string_view bytes);
  // 64 lower-case digits. Called once, last.
  std::string HexDigest();

 private:
  struct Context;
  const std::unique_ptr<Context> context_;
};

// 64 lower-case digits.
std::string Sha256Hex(std::string_view bytes);

// 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view bytes);

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_SHA256_H_
