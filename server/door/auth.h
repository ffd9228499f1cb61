// Who calls, and what that caller may do.
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

// A caller whom the server believes. `name` is the token's, empty where no tokens are
// configured; what the caller claims about itself is kept apart (store::Provenance).
struct Principal {
  std::string name;
  Rights rights;
  Sha256Digest digest{};  // of the token
};

// kPermissionDenied names the token, its rights and the one that is missing.
absl::Status CheckRight(const Principal& principal, Right right);

// Thread-safe.
class Authenticator {
 public:
  // Asks nobody for a token: every caller has all rights.
  Authenticator() = default;
  // Loads the tokens of a file. Errors as ReadTokenFile(); kInvalidArgument: it holds none.
  static absl::StatusOr<std::unique_ptr<Authenticator>> Load(const std::filesystem::path& path);

  // Reads the file again. On an error the tokens stay as they were.
  absl::Status Reload();

  // `authorization` is the call's header, "Bearer TOKEN". All digests are compared in full,
  // so the time taken says nothing about a token.
  // Errors: kUnauthenticated  none, malformed or unknown.
  absl::StatusOr<Principal> Authenticate(std::optional<std::string_view> authorization) const;

  // Whether the token of `principal` is known still, and has `right` (nullopt: any) still.
  // Errors: kUnauthenticated  it was removed; kPermissionDenied  as CheckRight().
  absl::Status StillMay(const Principal& principal, std::optional<Right> right) const;

  bool wants_tokens() const { return !path_.empty(); }
  size_t token_count() const;

  // Told of each call that is looked at. It must outlive all calls; nullptr: nobody is.
  CallGate* gate() const { return gate_; }
  void set_gate(CallGate* gate) { gate_ = gate; }

 private:
  const std::filesystem::path path_;  // empty: no tokens wanted
  CallGate* gate_ = nullptr;
  mutable absl::Mutex mutex_;
  std::vector<TokenEntry> tokens_ ABSL_GUARDED_BY(mutex_);

  explicit Authenticator(std::filesystem::path path) : path_(std::move(path)) {}
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_AUTH_H_
