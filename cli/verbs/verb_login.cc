// h5mirror login, h5mirror logout: the token of the site's single sign-on.
#include <filesystem>
#include <memory>

#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "cli/login/login.h"
#include "cli/output/text.h"
#include "cli/process/stop_signal.h"
#include "cli/verbs/verbs.h"
#include "rpc/client_files.h"

namespace h5mirror::tools {
namespace {

constexpr absl::Duration kLogoutLock = absl::Seconds(10);

struct Options {
  std::string token_file;
  std::string token_command;
  std::string issuer;
  std::string client_id;
  std::string scope;
  std::string issuer_ca;
  bool takes_id_token = false;
  bool refreshes = false;

  bool names_source() const {
    return !token_file.empty() || !token_command.empty() || !issuer.empty();
  }
};

// The server that the login is for. A token that there is already is not looked at.
absl::StatusOr<rpc::ClientOptions> ServerOf(const Context& context) {
  rpc::ClientSettings settings = context.flags().client;
  settings.token = "";
  return rpc::ResolveClientOptions(settings);
}

absl::StatusOr<LoginSettings> SettingsOf(const Options& options) {
  LoginSettings settings;
  if (!options.names_source()) {
    H5M_ASSIGN_OR_RETURN(settings, ReadLoginSettings(rpc::StandardDirectories()));
  }
  if (!options.token_file.empty()) {
    // The renewal may run in another directory.
    settings.token_file = options.token_file == "-"
                              ? options.token_file
                              : std::filesystem::absolute(options.token_file).native();
  }
  if (!options.token_command.empty()) {
    absl::StatusOr<std::vector<std::string>> command = SplitCommand(options.token_command);
    if (!command.ok()) {
      return absl::InvalidArgumentError(StrCat("--token-command ", command.status().message()));
    }
    settings.token_command = *std::move(command);
    FindProgramFrom(std::filesystem::current_path(), &settings.token_command);
  }
  if (!options.issuer.empty()) settings.issuer = options.issuer;
  if (!options.client_id.empty()) settings.client_id = options.client_id;
  if (!options.scope.empty()) settings.scope = options.scope;
  if (!options.issuer_ca.empty()) {
    settings.issuer_ca = std::filesystem::absolute(options.issuer_ca).native();
  }
  if (options.takes_id_token) settings.takes_id_token = true;
  return settings;
}

absl::StatusOr<int> Tell(Context& context, const std::string& server, const LoginResult& result) {
  H5M_ASSIGN_OR_RETURN(const LoginStore store, LoginStore::Open(server));
  if (context.json()) {
    context.Print(Json{{"server", server},
                       {"token_file", store.token_path().native()},
                       {"expires", TimeToJson(result.expires)},
                       {"renewed", result.is_new},
                       {"renewable", result.may_be_renewed}});
  }
  const bool is_known = result.expires != absl::InfiniteFuture();
  const std::string until =
      is_known ? StrCat(", until ", LocalTime(result.expires, context.streams().zone)) : "";
  context.Say(StrCat(result.is_new ? "logged in at " : "still logged in at ", server, until));
  if (result.is_new && is_known && !result.may_be_renewed) {
    context.Note("this login cannot be renewed: run h5mirror login again before it ends");
  }
  return kExitOk;
}

absl::StatusOr<int> RunLogin(Context& context, const Options& options) {
  H5M_ASSIGN_OR_RETURN(const rpc::ClientOptions server, ServerOf(context));
  if (options.refreshes) {
    if (options.names_source()) {
      return absl::InvalidArgumentError(
          "--refresh renews the present login: leave out the flags for the source of its token");
    }
    H5M_ASSIGN_OR_RETURN(const LoginResult result, RefreshLogin(server.server));
    return Tell(context, server.server, result);
  }
  H5M_ASSIGN_OR_RETURN(const LoginSettings settings, SettingsOf(options));
  if (server.ca_pem.empty() && !server.loopback) {
    return absl::FailedPreconditionError(
        StrCat("there is no CA for ", server.server,
               ", and the token would go there in plain text: put the server's ca.pem into "
               "~/.config/h5mirror first"));
  }
  const StopSignal stop;
  const LoginDialog dialog{
      .show =
          [&](const DeviceCode& code) {
            context.Note(StrCat("to log in, open ", Printable(code.url), " and type the code ",
                                Printable(code.code)));
            if (code.complete_url.empty()) return;
            context.Note(StrCat("or open ", Printable(code.complete_url), " and compare the code"));
          },
      .wait = [&](absl::Duration time) { return !stop.Wait(time); }};
  H5M_ASSIGN_OR_RETURN(const LoginResult result, LogIn(server.server, settings, dialog));
  return Tell(context, server.server, result);
}

absl::StatusOr<int> RunLogout(Context& context, const Options& /*options*/) {
  H5M_ASSIGN_OR_RETURN(const rpc::ClientOptions server, ServerOf(context));
  H5M_ASSIGN_OR_RETURN(LoginStore store, LoginStore::Open(server.server));
  H5M_RETURN_IF_ERROR(store.Lock(kLogoutLock));
  H5M_ASSIGN_OR_RETURN(const bool was_there, store.Remove());
  if (context.json()) context.Print(Json{{"server", server.server}, {"removed", was_there}});
  context.Say(StrCat(was_there ? "logged out at " : "there was no login at ", server.server));
  return kExitOk;
}

}  // namespace

void AddLogin(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb =
      app.add_subcommand("login", "Get a token of the site's single sign-on, for one server");
  verb->add_option("--issuer", options->issuer,
                   "URL of the issuer; you log in there with a browser of any machine (RFC 8628)");
  verb->add_option("--client-id", options->client_id, "h5mirror's name at the issuer");
  verb->add_option("--scope", options->scope,
                   "the scope to request (default: openid offline_access)");
  verb->add_flag("--id-token", options->takes_id_token,
                 "keep the ID token in place of the access token");
  verb->add_option("--issuer-ca", options->issuer_ca,
                   "PEM of the CA of the issuer (default: those of the system)");
  verb->add_option("--token-command", options->token_command,
                   "a program that prints the token, and its arguments; no shell reads them");
  verb->add_option("--token-file", options->token_file, "a file with the token; -: standard input");
  verb->add_flag("--refresh", options->refreshes,
                 "renew the login, unless more than half of its time is left");
  verb->footer(
      "Without --issuer, --token-command and --token-file, login.toml beside client.toml names "
      "the source of the token. Running programs take a renewed token by themselves.");
  OnVerb(*verb, context, action, options, RunLogin);
}

void AddLogout(CLI::App& app, Context& context, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("logout", "Remove the token and its means of renewal");
  OnVerb(*verb, context, action, options, RunLogout);
}

}  // namespace h5mirror::tools
