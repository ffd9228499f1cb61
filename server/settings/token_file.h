// The file of tokens: one `NAME RIGHTS SHA256 [LIMIT...]` line each, e.g.
//
//   node7 read,write 5e88489... files=runs/**,cal.h5 expires=2027-02-24T00:00:00Z from=192.0.2.0/24
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
#include "absl/time/time.h"
#include "server/settings/address_range.h"
#include "server/settings/rights.h"

namespace h5mirror::server {

using Sha256Digest = std::array<uint8_t, 32>;
Sha256Digest Sha256(std::string_view text);

// The limits of a token, apart from its rights.
struct TokenLimits {
  std::vector<std::string> files;  // globs; empty: all files
  absl::Time expires = absl::InfiniteFuture();
  std::vector<AddressRange> from;  // empty: from anywhere, also through a Unix socket

  // Sets one of files, expires and from, by its text in the file. kInvalidArgument: quotes it.
  absl::Status Set(std::string_view key, std::string_view text);
  // " files=runs/** expires=2027-02-24T00:00:00Z", as in the file; "" without any.
  std::string ToString() const;
};

struct TokenEntry {
  std::string name;  // 1..64 of [A-Za-z0-9._@-]
  Rights rights;
  Sha256Digest digest{};
  TokenLimits limits = {};
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
                                     Rights rights, TokenLimits limits = {});

// Gives an entry a new token, and returns it. Rights and limits stay. kNotFound: no such name.
absl::StatusOr<std::string> RotateToken(const std::filesystem::path& path, std::string_view name);

// kNotFound: no such name.
absl::Status RemoveToken(const std::filesystem::path& path, std::string_view name);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_TOKEN_FILE_H_
