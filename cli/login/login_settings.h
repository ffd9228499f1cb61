// Where a login gets its token: flags of `h5mirror login`, else login.toml beside client.toml.
#ifndef H5MIRROR_CLI_LOGIN_LOGIN_SETTINGS_H_
#define H5MIRROR_CLI_LOGIN_LOGIN_SETTINGS_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace h5mirror::tools {

// One of token_file, token_command and issuer is set.
struct LoginSettings {
  std::string token_file = {};                  // "-": standard input
  std::vector<std::string> token_command = {};  // a program and its arguments
  std::string issuer = {};                      // an URL
  std::string client_id = {};                   // as which the issuer knows h5mirror
  std::string scope = "openid offline_access";
  std::string issuer_ca = {};   // PEM of the authorities to trust; empty: those of the system
  bool takes_id_token = false;  // the ID token in place of the access token

  bool empty() const { return token_file.empty() && token_command.empty() && issuer.empty(); }
};

// The words of a command: spaces part them, "..." and '...' keep them together. There is no shell,
// so nothing else has a meaning. kInvalidArgument: no word, or a quote without its end.
absl::StatusOr<std::vector<std::string>> SplitCommand(std::string_view command);

// A program with a '/' in its name is meant from `directory`: the renewal may run in another one.
// Others are looked for in PATH.
void FindProgramFrom(const std::filesystem::path& directory, std::vector<std::string>* command);

// login.toml of the first directory that has one; empty settings: none has. Keys: token_command (a
// text or an array), issuer, client_id, scope, issuer_ca, token = "access" or "id". Paths are meant
// from its directory.
// Errors: kInvalidArgument names file, line and key; those of ReadTomlFile().
absl::StatusOr<LoginSettings> ReadLoginSettings(
    absl::Span<const std::filesystem::path> directories);

// kInvalidArgument: not exactly one source of a token, or an issuer without client_id.
absl::Status CheckLoginSettings(const LoginSettings& settings);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_LOGIN_LOGIN_SETTINGS_H_
