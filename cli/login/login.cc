#include "cli/login/login.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "cli/process/child.h"
#include "rpc/client_files.h"

namespace h5mirror::tools {
namespace {

constexpr absl::Duration kCommandTimeout = absl::Minutes(1);
// Another process may wait for the issuer or for a command meanwhile.
constexpr absl::Duration kLockTimeout = absl::Minutes(2);
constexpr size_t kErrorShownMax = 300;
constexpr size_t kInputBytesMax = 16 << 10;

// While it lives, signals that would end us wait. For a process of one thread.
class StopsWait {
 public:
  StopsWait() {
    sigset_t stops;
    sigemptyset(&stops);
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&stops, number);
    pthread_sigmask(SIG_BLOCK, &stops, &before_);
  }
  ~StopsWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  StopsWait(const StopsWait&) = delete;
  StopsWait& operator=(const StopsWait&) = delete;

 private:
  sigset_t before_;
};

std::string ReadInput() {
  std::string text;
  for (char c; text.size() <= kInputBytesMax && std::cin.get(c);) text += c;
  return text;
}

absl::StatusOr<std::string> TokenOfCommand(const std::vector<std::string>& command) {
  H5M_ASSIGN_OR_RETURN(const ChildResult result, RunChild(command, {}, kCommandTimeout));
  if (result.code != 0) {
    return absl::FailedPreconditionError(
        StrCat("token_command ", Quoted(Printable(command[0])), " ended with code ", result.code,
               ": ", Printable(std::string_view(result.err).substr(0, kErrorShownMax))));
  }
  return rpc::ReadToken(result.out.starts_with('@') ? std::string() : result.out);
}

absl::StatusOr<std::string> TokenOfFile(const std::string& file) {
  if (file != "-") return rpc::ReadToken("@" + file);
  const std::string text = ReadInput();
  return rpc::ReadToken(text.starts_with('@') ? std::string() : text);
}

// Makes the login from a new token: writes the token, and then that it was.
absl::StatusOr<LoginResult> Keep(const LoginStore& store, KeptLogin login, std::string_view token,
                                 std::optional<absl::Duration> lifetime) {
  H5M_RETURN_IF_ERROR(store.WriteToken(token));
  login.obtained = absl::Now();
  login.expires = absl::InfiniteFuture();
  if (lifetime) login.expires = login.obtained + *lifetime;
  if (const auto expires = ExpiryOf(token)) login.expires = *expires;
  H5M_RETURN_IF_ERROR(store.Save(login));
  const bool may_be_renewed = login.settings.issuer.empty() ? login.settings.token_file != "-"
                                                            : !login.refresh_token.empty();
  return LoginResult{.expires = login.expires, .is_new = true, .may_be_renewed = may_be_renewed};
}

absl::StatusOr<LoginResult> KeepIssued(const LoginStore& store, KeptLogin login,
                                       const IssuedTokens& tokens) {
  if (!tokens.refresh_token.empty()) login.refresh_token = tokens.refresh_token;
  // First: the issuer may take the former one no more.
  H5M_RETURN_IF_ERROR(store.Save(login));
  const bool takes_id = login.settings.takes_id_token;
  const std::string& token = takes_id ? tokens.id_token : tokens.access_token;
  if (token.empty()) {
    return absl::FailedPreconditionError(
        takes_id ? "the issuer gave no ID token: ask for the scope \"openid\", or take its access "
                   "token"
                 : "the issuer gave no access token");
  }
  // Checks it; a text that begins with '@' would be a file's name.
  H5M_RETURN_IF_ERROR(rpc::ReadToken(token.starts_with('@') ? std::string() : token).status());
  return Keep(store, std::move(login), token, takes_id ? std::nullopt : tokens.lifetime);
}

absl::StatusOr<LoginResult> KeepRead(const LoginStore& store, KeptLogin login) {
  const LoginSettings& settings = login.settings;
  H5M_ASSIGN_OR_RETURN(const std::string token, settings.token_command.empty()
                                                    ? TokenOfFile(settings.token_file)
                                                    : TokenOfCommand(settings.token_command));
  return Keep(store, std::move(login), token, std::nullopt);
}

bool IsFreshEnough(const KeptLogin& login) {
  if (login.expires == absl::InfiniteFuture() || login.obtained == absl::InfinitePast()) {
    return false;
  }
  return absl::Now() < login.obtained + (login.expires - login.obtained) / 2;
}

}  // namespace

absl::StatusOr<LoginResult> LogIn(std::string_view server, const LoginSettings& settings,
                                  const LoginDialog& dialog) {
  H5M_RETURN_IF_ERROR(CheckLoginSettings(settings));
  H5M_ASSIGN_OR_RETURN(LoginStore store, LoginStore::Open(server));
  KeptLogin login{.settings = settings};
  if (settings.issuer.empty()) {
    H5M_RETURN_IF_ERROR(store.Lock(kLockTimeout));
    return KeepRead(store, std::move(login));
  }
  const Issuer issuer(settings.issuer, settings.issuer_ca);
  H5M_ASSIGN_OR_RETURN(const IssuerEndpoints endpoints, issuer.Discover());
  login.token_endpoint = endpoints.token;
  // Without the lock: the user may take minutes.
  H5M_ASSIGN_OR_RETURN(const IssuedTokens tokens,
                       issuer.LogInByDevice(endpoints, settings.client_id, settings.scope,
                                            dialog.show, dialog.wait));
  H5M_RETURN_IF_ERROR(store.Lock(kLockTimeout));
  return KeepIssued(store, std::move(login), tokens);
}

absl::StatusOr<LoginResult> RefreshLogin(std::string_view server) {
  H5M_ASSIGN_OR_RETURN(LoginStore store, LoginStore::Open(server));
  H5M_RETURN_IF_ERROR(store.Lock(kLockTimeout));
  // Behind the lock: another process may just have renewed it.
  absl::StatusOr<KeptLogin> login = store.Read();
  if (absl::IsNotFound(login.status())) {
    return absl::NotFoundError(
        StrCat("there is no login at ", server, " to renew: run `h5mirror login`"));
  }
  H5M_RETURN_IF_ERROR(login.status());
  const LoginSettings& settings = login->settings;
  if (IsFreshEnough(*login)) {
    return LoginResult{.expires = login->expires, .is_new = false, .may_be_renewed = true};
  }
  if (settings.issuer.empty() && settings.token_file != "-") {
    return KeepRead(store, *std::move(login));
  }
  if (settings.issuer.empty() || login->refresh_token.empty()) {
    return absl::FailedPreconditionError(
        "this login cannot be renewed, as it has no refresh token (the scope offline_access may "
        "bring one): run `h5mirror login` again");
  }
  // A full disk is to show before the issuer gives a token that could not be kept.
  H5M_RETURN_IF_ERROR(store.Save(*login));
  // A signal that ends us would lose the new refresh token, and the former one counts no more.
  const StopsWait wait;
  const Issuer issuer(settings.issuer, settings.issuer_ca);
  const absl::StatusOr<IssuedTokens> tokens =
      issuer.Refresh(login->token_endpoint, settings.client_id, login->refresh_token);
  if (absl::IsUnauthenticated(tokens.status())) {
    return absl::UnauthenticatedError(
        StrCat(tokens.status().message(), ": run `h5mirror login` again"));
  }
  H5M_RETURN_IF_ERROR(tokens.status());
  return KeepIssued(store, *std::move(login), *tokens);
}

}  // namespace h5mirror::tools
