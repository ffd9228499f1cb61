#include "cli/login/login_settings.h"

#include <optional>

#include "base/status_macros.h"
#include "base/strings.h"
#include "base/toml_file.h"

namespace h5mirror::tools {
namespace {

absl::Status Bad(const std::string& place, std::string_view what) {
  return absl::InvalidArgumentError(StrCat(place, ": ", what));
}

absl::Status TakeCommand(const toml::node& value, LoginSettings* settings) {
  if (const auto text = value.value_exact<std::string>()) {
    H5M_ASSIGN_OR_RETURN(settings->token_command, SplitCommand(*text));
    return absl::OkStatus();
  }
  const toml::array* const words = value.as_array();
  if (words == nullptr) return absl::InvalidArgumentError("must be a text or an array of texts");
  for (const toml::node& word : *words) {
    const auto text = word.value_exact<std::string>();
    if (!text) return absl::InvalidArgumentError("must be a text or an array of texts");
    settings->token_command.push_back(*text);
  }
  if (words->empty()) return absl::InvalidArgumentError("names no program");
  return absl::OkStatus();
}

absl::Status Take(std::string_view name, const toml::node& value,
                  const std::filesystem::path& directory, LoginSettings* settings) {
  if (name == "token_command") {
    H5M_RETURN_IF_ERROR(TakeCommand(value, settings));
    FindProgramFrom(directory, &settings->token_command);
    return absl::OkStatus();
  }
  const std::optional<std::string> text = value.value_exact<std::string>();
  if (!text) return absl::InvalidArgumentError("must be a text");
  if (name == "issuer") settings->issuer = *text;
  if (name == "client_id") settings->client_id = *text;
  if (name == "scope") settings->scope = *text;
  if (name == "issuer_ca") settings->issuer_ca = (directory / *text).native();
  if (name != "token") return absl::OkStatus();
  settings->takes_id_token = *text == "id";
  if (*text == "id" || *text == "access") return absl::OkStatus();
  return absl::InvalidArgumentError("must be \"access\" or \"id\"");
}

bool IsKey(std::string_view name) {
  return name == "token_command" || name == "issuer" || name == "client_id" || name == "scope" ||
         name == "issuer_ca" || name == "token";
}

absl::StatusOr<LoginSettings> FromToml(const std::filesystem::path& path,
                                       const toml::table& table) {
  LoginSettings settings;
  for (const auto& [key, value] : table) {
    const std::string place = StrCat(path.native(), ":", value.source().begin.line);
    if (!IsKey(key.str())) {
      return Bad(place, StrCat("unknown key `", key.str(),
                               "`; known are token_command, issuer, client_id, scope, issuer_ca, "
                               "token"));
    }
    if (const absl::Status taken = Take(key.str(), value, path.parent_path(), &settings);
        !taken.ok()) {
      return Bad(place, StrCat("`", key.str(), "` ", ToStd(taken.message())));
    }
  }
  if (const absl::Status status = CheckLoginSettings(settings); !status.ok()) {
    return Bad(path.native(), ToStd(status.message()));
  }
  return settings;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SplitCommand(std::string_view command) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (const char c : command) {
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
      if (!in_word) words.emplace_back();
      in_word = true;
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      in_word = false;
    } else {
      if (!in_word) words.emplace_back();
      in_word = true;
      words.back() += c;
    }
  }
  if (quote != 0) return absl::InvalidArgumentError("has a quote without its end");
  if (words.empty()) return absl::InvalidArgumentError("names no program");
  return words;
}

void FindProgramFrom(const std::filesystem::path& directory, std::vector<std::string>* command) {
  std::string& program = command->front();
  if (program.find('/') != std::string::npos) program = (directory / program).native();
}

absl::StatusOr<LoginSettings> ReadLoginSettings(
    absl::Span<const std::filesystem::path> directories) {
  for (const std::filesystem::path& directory : directories) {
    const std::filesystem::path path = directory / "login.toml";
    const absl::StatusOr<toml::table> table = ReadTomlFile(path);
    if (absl::IsNotFound(table.status())) continue;
    H5M_RETURN_IF_ERROR(table.status());
    return FromToml(path, *table);
  }
  return LoginSettings();
}

absl::Status CheckLoginSettings(const LoginSettings& settings) {
  const int sources = static_cast<int>(!settings.token_file.empty()) +
                      static_cast<int>(!settings.token_command.empty()) +
                      static_cast<int>(!settings.issuer.empty());
  if (sources == 0) {
    return absl::InvalidArgumentError(
        "no source of the token is set: give --issuer URL --client-id ID, "
        "--token-command CMD or --token-file FILE, or ask your site for a login.toml");
  }
  if (sources > 1) {
    return absl::InvalidArgumentError(
        "several sources of the token are set: leave one, an issuer, a command or a file");
  }
  if (!settings.issuer.empty() && settings.client_id.empty()) {
    return absl::InvalidArgumentError(
        "no client id is set: give --client-id ID, h5mirror's name at the issuer");
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::tools
