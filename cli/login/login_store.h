// The login at one server: the token that programs show, and its means of renewal. Two files in
// ~/.config/h5mirror/tokens, mode 0600: SERVER is the token (rpc/client_files.h), SERVER.login the
// rest. Both are replaced as a whole and synced.
#ifndef H5MIRROR_CLI_LOGIN_LOGIN_STORE_H_
#define H5MIRROR_CLI_LOGIN_LOGIN_STORE_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/owned_fd.h"
#include "cli/login/login_settings.h"

namespace h5mirror::tools {

struct KeptLogin {
  LoginSettings settings = {};
  std::string token_endpoint = {};  // of an issuer
  std::string refresh_token = {};   // empty: the issuer gave none
  absl::Time obtained = absl::InfinitePast();
  absl::Time expires = absl::InfiniteFuture();  // infinite: not known
};

// Not thread-safe.
class LoginStore {
 public:
  // Makes the directory, mode 0700. Files that root makes in a user's HOME belong to that user.
  // kFailedPrecondition: there is no HOME.
  static absl::StatusOr<LoginStore> Open(std::string_view server);

  // Among all machines that share the directory, one process holds the lock, until this is
  // destroyed. Data read before Lock() may be old. kUnavailable: another one holds it for longer
  // than `timeout`.
  absl::Status Lock(absl::Duration timeout);

  // kNotFound: there is no login. kDataLoss: the file does not parse.
  absl::StatusOr<KeptLogin> Read() const;
  absl::Status Save(const KeptLogin& login) const;
  absl::Status WriteToken(std::string_view token) const;
  // True: there was one.
  absl::StatusOr<bool> Remove() const;

  const std::filesystem::path& token_path() const { return token_path_; }

 private:
  explicit LoginStore(std::filesystem::path token_path) : token_path_(std::move(token_path)) {}
  std::filesystem::path PathOf(std::string_view extension) const;

  std::filesystem::path token_path_;
  OwnedFd lock_;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_LOGIN_LOGIN_STORE_H_
