// The file of tokens: one `NAME RIGHTS SHA256` line each, e.g.
//
//   node7 read,write 5e88489...
//
// The file has only digests, so a reader of it gets no access. '#' starts a comment.
#ifndef H5MIRROR_SERVER_SETTINGS_TOKEN_FILE_H_
#define H5MIRROR_SERVER_SETTINGS_TOKEN_FILE_H_

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace h5mirror::server {

// The right that a call needs. No right includes another: a token has a set of them.
enum class Right : uint8_t {
  kRead = 1,   // list, read versions
  kWrite = 2,  // mirror files
  kAdmin = 4,  // roll back, adopt
};

class Rights {
 public:
  constexpr Rights() = default;
  static constexpr Rights All() { return Rights(7); }
  constexpr bool Has(Right right) const { return (bits_ & static_cast<uint8_t>(right)) != 0; }
  constexpr void Add(Right right) { bits_ |= static_cast<uint8_t>(right); }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool operator==(const Rights&) const = default;

  // "read", "write", "admin", in this order.
  std::vector<std::string> Names() const;
  // "read,write".
  std::string ToString() const;
  // The inverse. kInvalidArgument quotes the word and shows the three.
  static absl::StatusOr<Rights> Parse(std::string_view text);

 private:
  explicit constexpr Rights(uint8_t bits) : bits_(bits) {}
  uint8_t bits_ = 0;
};

using Sha256Digest = std::array<uint8_t, 32>;
Sha256Digest Sha256(std::string_view text);

struct TokenEntry {
  std::string name;  // 1..64 of [A-Za-z0-9._@-]
  Rights rights;
  Sha256Digest digest{};
};

// A new token: "h5m_" and 64 hex digits of 32 random bytes.
std::string MakeToken();

// kInvalidArgument names line and value, e.g. "/etc/h5mirror/tokens:3: ...".
absl::StatusOr<std::vector<TokenEntry>> ParseTokens(std::string_view text, std::string_view source);

// kNotFound; kPermissionDenied: users other than its owner can write it.
absl::StatusOr<std::vector<TokenEntry>> ReadTokenFile(const std::filesystem::path& path);

// Replaces the file (mode 0600, the owner stays), so that a reader sees the old or the new one.
absl::Status WriteTokenFile(const std::filesystem::path& path,
                            const std::vector<TokenEntry>& entries);

// Adds an entry and returns its token, which is stored nowhere. Makes the file if there is none.
// kAlreadyExists: the name is taken; kInvalidArgument: not a name.
absl::StatusOr<std::string> AddToken(const std::filesystem::path& path, std::string_view name,
                                     Rights rights);

// kNotFound: no such name.
absl::Status RemoveToken(const std::filesystem::path& path, std::string_view name);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_TOKEN_FILE_H_
