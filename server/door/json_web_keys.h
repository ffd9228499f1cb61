// The public keys of an issuer of tokens (a JWKS, RFC 7517), from a file that is read again when it
// has changed.
#ifndef H5MIRROR_SERVER_DOOR_JSON_WEB_KEYS_H_
#define H5MIRROR_SERVER_DOOR_JSON_WEB_KEYS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cjose/jwk.h"
#include "server/settings/token_file.h"

namespace h5mirror::server {

// One key, of a kind that signs tokens here.
struct JsonWebKey {
  enum class Kind : uint8_t {
    kRsa,   // of 2048 to 8192 bits
    kP256,  // EC
    kP384,  // EC
  };

  std::string id;         // "kid"; empty: it has none
  std::string algorithm;  // "alg"; empty: any of its kind
  Kind kind = Kind::kRsa;
  Sha256Digest thumbprint{};  // RFC 7638: the same for the same key, with any id
  // cjose only reads it to verify, so threads share it.
  std::shared_ptr<const cjose_jwk_t> key = nullptr;

  // Whether the key can verify signatures by `algorithm`, as "RS256". True only for RS256, RS384,
  // RS512, PS256, PS384, PS512, ES256 and ES384. "none" and HS256 use no public key.
  bool Fits(std::string_view algorithm) const;
};

// The content of a file.
struct JsonWebKeySet {
  std::vector<JsonWebKey> keys;       // 256 at most
  std::vector<std::string> left_out;  // why other keys of it do not count
};

// kInvalidArgument: no JWKS, or of more than 256 keys; begins with `source`.
absl::StatusOr<JsonWebKeySet> ParseJsonWebKeys(std::string_view text, std::string_view source);

// One character of base64url or more, without padding.
bool IsBase64Url(std::string_view text);
// The bytes that `text` encodes; kInvalidArgument: it is not base64url.
absl::StatusOr<std::string> DecodeBase64Url(std::string_view text);

// Thread-safe.
class JsonWebKeys {
 public:
  using Keys = std::shared_ptr<const std::vector<JsonWebKey>>;

  // Errors: kInvalidArgument   no JWKS, or one without a key that counts
  //         kPermissionDenied  users other than root and the server's may write the file
  //         those of ReadGuardedFile(); all name the setting and the file.
  static absl::StatusOr<std::unique_ptr<JsonWebKeys>> Load(const std::filesystem::path& path);

  // Reads the file again. A set without a key counts: it takes all tokens back. On an error, which
  // is logged once, the keys stay. True: other keys count now.
  absl::StatusOr<bool> Reload();
  // The same, if the file has changed since it was read.
  absl::StatusOr<bool> ReloadIfChanged();

  Keys keys() const;
  // Whether the key with this thumbprint counts still.
  bool Has(const Sha256Digest& thumbprint) const;

 private:
  // Tells one state of the file from another; zeros: stat(2) fails.
  struct State {
    dev_t device = 0;
    ino_t inode = 0;
    off_t size_bytes = 0;
    int64_t modified_ns = 0;
    int64_t changed_ns = 0;

    bool operator==(const State& other) const = default;
  };

  explicit JsonWebKeys(std::filesystem::path path) : path_(std::move(path)) {}
  State Look() const;
  absl::StatusOr<JsonWebKeySet> Read() const;
  absl::StatusOr<bool> Take(absl::StatusOr<JsonWebKeySet> set, const State& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(reload_mutex_);

  const std::filesystem::path path_;
  // Held while the file is read; taken before `mutex_`. Without it, of two threads that read at
  // once, the one with the older state could win. Callers with a token never wait for it.
  absl::Mutex reload_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable absl::Mutex mutex_;
  Keys keys_ ABSL_GUARDED_BY(mutex_) = std::make_shared<const std::vector<JsonWebKey>>();
  State state_ ABSL_GUARDED_BY(mutex_);  // before the last look
  std::string last_error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_JSON_WEB_KEYS_H_
