// The caller of a call, and its rights.
#ifndef H5MIRROR_SERVER_DOOR_AUTH_H_
#define H5MIRROR_SERVER_DOOR_AUTH_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/settings/token_file.h"

namespace h5mirror::server {

class CallGate;

// A caller that the server has authenticated. `name` is the token's, empty if no tokens are
// configured. The caller's own account of itself is apart (store::Provenance).
struct Principal {
  std::string name;
  Rights rights;
  Sha256Digest digest{};  // of the token
};

// For the log: the token's name, "-" where no token is asked for.
inline std::string_view TokenName(const Principal& principal) {
  return principal.name.empty() ? "-" : std::string_view(principal.name);
}

// kPermissionDenied names the token, its rights and the one that is missing.
absl::Status CheckRight(const Principal& principal, Right right);

// Thread-safe.
class Authenticator {
 public:
  // Asks for no token: every caller has all rights.
  Authenticator() = default;
  // Loads the tokens of a file. Errors as ReadTokenFile(); kInvalidArgument: it holds none.
  static absl::StatusOr<std::unique_ptr<Authenticator>> Load(const std::filesystem::path& path);

  // Reads the file again. On an error the tokens stay as they were.
  absl::Status Reload();

  // `authorization` is the call's header, "Bearer TOKEN". All digests are compared in full, so that
  // the time taken tells nothing about a token. kUnauthenticated: no token, a malformed or an
  // unknown one.
  absl::StatusOr<Principal> Authenticate(std::optional<std::string_view> authorization) const;

  // OK: the token of `principal` still exists, and still has `right` (nullopt: any).
  // Errors: kUnauthenticated  it was removed; kPermissionDenied  as CheckRight().
  absl::Status StillMay(const Principal& principal, std::optional<Right> right) const;

  bool wants_tokens() const { return !path_.empty(); }
  size_t token_count() const;

  // Hears of each call whose token is checked. It must outlive all calls; nullptr: none.
  CallGate* gate() const { return gate_; }
  void set_gate(CallGate* gate) { gate_ = gate; }

 private:
  const std::filesystem::path path_;  // empty: no tokens are asked for
  CallGate* gate_ = nullptr;
  mutable absl::Mutex mutex_;
  std::vector<TokenEntry> tokens_ ABSL_GUARDED_BY(mutex_);

  explicit Authenticator(std::filesystem::path path) : path_(std::move(path)) {}
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_AUTH_H_
