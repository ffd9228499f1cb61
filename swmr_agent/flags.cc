#include "swmr_agent/flags.h"

#include <iostream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/cli_help.h"
#include "base/cli_words.h"
#include "base/strings.h"
#include "base/version.h"

namespace h5mirror::agent {
namespace {

constexpr char kDescription[] =
    "h5mirror-agent lets all readers of this host share their reads of live HDF5 files: one\n"
    "subscription a file, each byte fetched once. Readers find it by themselves, and go on\n"
    "without it when it is gone.\n\n"
    "  h5mirror-agent                              for you: servers of ~/.config/h5mirror\n"
    "  h5mirror-agent --server node7:7447          for you, that server\n"
    "  h5mirror-agent --server node7:7447 --publish /srv/live run7.h5\n"
    "                                              keeps the newest cut as /srv/live/run7.h5";

constexpr char kFooter[] =
    "It reads with its own token. The permissions of the socket choose the users that may\n"
    "connect. The server decides about the files of each user.\n\n"
    "Signals: TERM and INT stop it, a second one at once. Exit codes: 0 stopped; 1 failed;\n"
    "2 command line or configuration; 6 cannot listen on the socket.";

// Its values, as given; empty: not given.
struct Texts {
  std::map<std::string, std::string, std::less<>> keys;
  std::string config, ca, token;
  std::vector<std::string> servers, files;
};

void AddOptions(CLI::App& app, Texts& texts) {
  const auto add = [&](const std::string& flag, std::string& text, std::string_view help,
                       std::string_view type) {
    app.add_option(flag, text, std::string(help))->type_name(std::string(type));
  };
  add("--config", texts.config, "Configuration file (TOML); these flags win over it", "FILE");
  app.add_option("--server", texts.servers, "A server to read from; may be given several times")
      ->type_name("HOST[:PORT]|unix:PATH")
      ->allow_extra_args(false);
  add("--ca", texts.ca, "PEM file with the certificate that signs the servers'", "FILE");
  add("--token", texts.token, "The agent's token for the servers", "TOKEN|@FILE");
  for (const ConfigKey& key : ConfigKeys()) {
    add(SettingFlag(key.name), texts.keys[std::string(key.name)], key.help, key.value_name);
  }
  app.add_option("file", texts.files, "With --publish: names on the first server")
      ->type_name("NAME...");
}

Settings SettingsOf(Texts texts) {
  Settings settings;
  std::erase_if(texts.keys, [](const auto& given) { return given.second.empty(); });
  settings.texts = std::move(texts.keys);
  settings.publish_files = std::move(texts.files);
  if (texts.servers.empty() && (!texts.ca.empty() || !texts.token.empty())) {
    settings.servers.emplace_back();  // Of the client's configuration, with these.
  }
  for (std::string& server : texts.servers) {
    settings.servers.emplace_back();
    settings.servers.back().server = std::move(server);
  }
  for (rpc::ClientSettings& server : settings.servers) {
    if (!texts.ca.empty()) server.ca = texts.ca;
    if (!texts.token.empty()) server.token = texts.token;
  }
  return settings;
}

}  // namespace

ParsedFlags ParseFlags(int argc, char** argv) {
  ParsedFlags parsed;
  Texts texts;
  CLI::App app{kDescription, "h5mirror-agent"};
  UseNarrowHelp(app);
  app.footer(kFooter);
  app.set_version_flag("--version", StrCat("h5mirror-agent ", kVersion));
  app.add_flag("--check-config", parsed.check_config, "Check the configuration and end");
  AddOptions(app, texts);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app.exit(error);
      parsed.exit = ExitCode::kOk;
      return parsed;
    }
    const std::vector<std::string> words(argv + 1, argv + argc);
    std::cerr << "h5mirror-agent: " << WhyNotParsed(app, words, error)
              << " (h5mirror-agent --help shows all flags)\n";
    parsed.exit = ExitCode::kUsage;
    return parsed;
  }
  const std::string config = texts.config;
  parsed.settings = SettingsOf(std::move(texts));
  if (config.empty()) return parsed;
  absl::StatusOr<Settings> file = ReadConfigFile(config);
  if (!file.ok()) {
    std::cerr << "h5mirror-agent: " << file.status().message() << "\n";
    parsed.exit = ExitCode::kUsage;
    return parsed;
  }
  parsed.settings = Merge(*std::move(file), std::move(parsed.settings));
  return parsed;
}

}  // namespace h5mirror::agent
