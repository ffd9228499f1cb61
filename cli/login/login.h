// A login: a token from its source into its file, and its renewal.
#ifndef H5MIRROR_CLI_LOGIN_LOGIN_H_
#define H5MIRROR_CLI_LOGIN_LOGIN_H_

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cli/login/issuer.h"
#include "cli/login/login_settings.h"
#include "cli/login/login_store.h"

namespace h5mirror::tools {

// How the device flow meets the user: as Issuer::LogInByDevice().
struct LoginDialog {
  std::function<void(const DeviceCode&)> show;
  std::function<bool(absl::Duration)> wait;
};

struct LoginResult {
  absl::Time expires = absl::InfiniteFuture();  // infinite: not known
  bool is_new = true;                           // false: the token was still good for long enough
  bool may_be_renewed = false;                  // by RefreshLogin()
};

// Gets a token and keeps it for `server`. Errors: those of Issuer and LoginStore; kInvalidArgument:
// the source gave no token; kNotFound: no such program or file.
absl::StatusOr<LoginResult> LogIn(std::string_view server, const LoginSettings& settings,
                                  const LoginDialog& dialog);

// Renews the login at `server`, unless more than half of its time is left. Only one process at a
// time renews; the next ones find the new token. On any error the token in its file stays. A new
// refresh token is on disk before the rest of the answer is used.
// Errors: kNotFound: there is no login. kFailedPrecondition: it cannot be renewed.
absl::StatusOr<LoginResult> RefreshLogin(std::string_view server);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_LOGIN_LOGIN_H_
