// h5mirror web: the page is a program of the Python package, which takes this one's place.
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstddef>

#include "base/cli_words.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/process/child.h"
#include "cli/verbs/verbs.h"

namespace h5mirror::tools {
namespace {

constexpr absl::Duration kCheckMax = absl::Seconds(30);
constexpr char kWayOut[] =
    "; build the wheel with ./dev wheel, run pip install \"$(ls build/wheel/*.whl)[web]\" in a "
    "venv, and set H5MIRROR_PYTHON to the venv's bin/python";
// Finds modules without running them, and prints those that are missing.
constexpr char kMissing[] =
    "import importlib.util as u; print(*(n for n in ('h5mirror', 'h5py', 'aiohttp', 'h5grove') "
    "if u.find_spec(n) is None), sep=', ')";
// No module of the current directory counts, as it may be anybody's. Python before 3.11, which the
// package does not take, knows no such variable.
constexpr char kSafePath[] = "PYTHONSAFEPATH";

struct Flag {
  const char* name;
  bool has_value;
  const char* help;
};

// For --help. Python takes them, and those of its own version that are not here.
constexpr Flag kFlags[] = {
    {"--http", true, "the server's http_listen, as https://HOST:PORT; of a cluster URL|URL"},
    {"--read-token", true, "@FILE with fewer rights than --token, for processes that read files"},
    {"--listen", true, "the address of the page (127.0.0.1)"},
    {"--port", true, "the port of the page; 0: any that is free (0)"},
    {"--open", false, "open a browser"},
    {"--shared", false, "print no link: each visitor signs in with a token"},
    {"--https", false, "browsers come by https, through a reverse proxy"},
    {"--host-name", true, "a name that browsers know the page by; may be repeated"},
    {"--workers", true, "processes that read files, 1 to 64 (8)"},
    {"--oidc-issuer", true,
     "URL of the issuer of the site's single sign-on: visitors log in there"},
    {"--oidc-client-id", true, "the page's name at the issuer"},
    {"--oidc-client-secret", true, "@FILE with its secret there, if it is a confidential client"},
    {"--oidc-scope", true, "the scope to request (openid offline_access)"},
    {"--oidc-id-token", false, "the server takes the ID token, not the access token"},
    {"--oidc-ca", true, "PEM of the CA of the issuer (default: those of the system)"},
    {"--proxy-user-header", true, "header in which a reverse proxy names the user it signed in"},
    {"--proxy-secret", true, "@FILE with the secret that the proxy sends in X-Proxy-Secret"},
    {"--proxy-tokens", true, "directory with the token of each user, in a file of that name"},
    {"--proxy-sign-out", true, "URL or path where a browser ends its sign-in at the proxy"},
};

std::string Python() {
  const char* named = getenv("H5MIRROR_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

absl::Status NoPackage(std::string_view why) {
  return absl::NotFoundError(StrCat("web is a program of the Python package: ", why, kWayOut));
}

// The last line that has anything in it.
std::string_view LastLine(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const size_t end = text.rfind('\n');
  return end == std::string_view::npos ? text : text.substr(end + 1);
}

absl::Status CheckPackage(const std::string& python) {
  const absl::StatusOr<ChildResult> told =
      RunChild({python, "-c", kMissing}, {{kSafePath, "1"}}, kCheckMax);
  if (!told.ok()) return NoPackage(ToStd(told.status().message()));
  if (told->code != 0) return NoPackage(StrCat(python, ": ", LastLine(told->err)));
  const std::string_view missing = LastLine(told->out);
  if (!missing.empty()) return NoPackage(StrCat(python, " has no ", missing));
  return absl::OkStatus();
}

// Returns only if it fails.
absl::Status Become(std::vector<std::string> command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  setenv(kSafePath, "1", 1);
  execvp(words[0], words.data());
  return ErrnoToStatus(errno, StrCat("start ", command[0]));
}

// `arguments` without the verb: Python has flags before it behind it.
absl::StatusOr<int> RunWeb(const CLI::App& app, const std::vector<std::string>& arguments) {
  const std::string python = Python();
  H5M_RETURN_IF_ERROR(CheckPackage(python));
  const size_t verb = SkipFlags({&app}, arguments, 0);
  std::vector<std::string> command{python, "-m", "h5mirror", "web"};
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (i != verb) command.push_back(arguments[i]);
  }
  return Become(std::move(command));
}

}  // namespace

void AddWeb(CLI::App& app, const std::vector<std::string>& arguments, Action& action) {
  CLI::App* verb = app.add_subcommand("web", "Show files, versions and contents in a browser");
  for (const Flag& flag : kFlags) {
    if (flag.has_value) {
      verb->add_option_function<std::string>(
              flag.name, [](const std::string&) {}, flag.help)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    } else {
      verb->add_flag(flag.name, flag.help);
    }
  }
  verb->allow_extras();
  verb->footer(
      "The page is a program of the Python package. ./dev wheel builds its wheel, and pip install "
      "\"$(ls build/wheel/*.whl)[web]\" installs it in a venv. It is started with python3, or the "
      "Python that H5MIRROR_PYTHON names. It needs --http, and takes --server, --ca and --token. "
      "Without --server, H5MIRROR_SERVER or client.toml names the server.");
  verb->callback([&app, &arguments, &action] {
    action = [&app, &arguments] { return RunWeb(app, arguments); };
  });
}

}  // namespace h5mirror::tools
