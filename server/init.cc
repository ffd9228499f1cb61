#include "server/init.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>

#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/certificates.h"
#include "server/secret_file.h"
#include "server/token_file.h"

namespace h5mirror::server {
namespace {

enum class Reader {
  kEverybody,  // 0644
  kOperator,   // 0600, stays with the caller
  kServer,     // 0600, given to the server's user
};

struct NewFile {
  std::filesystem::path path;
  std::string content;
  Reader reader;
};

absl::Status RefuseExisting(const std::filesystem::path& directory) {
  for (const char* name : {"ca.pem", "ca.key", "server.pem", "server.key", "tokens", "token"}) {
    const std::filesystem::path path = directory / name;
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
      return absl::AlreadyExistsError(
          StrCat(path.string(),
                 " exists and is not overwritten: for one more client use `h5mirrord token add "
                 "NAME`; to begin anew move ",
                 directory.string(), " away, or give another --dir"));
    }
  }
  return absl::OkStatus();
}

absl::Status GiveTo(const std::filesystem::path& path, const passwd& user) {
  if (chown(path.c_str(), user.pw_uid, user.pw_gid) == 0) return absl::OkStatus();
  return ErrnoToStatus(errno, StrCat("give ", path.string(), " to ", user.pw_name));
}

absl::StatusOr<const passwd*> FindUser(const std::string& name) {
  if (name.empty()) return nullptr;
  const passwd* user = getpwnam(name.c_str());
  if (user == nullptr) {
    return absl::NotFoundError(
        StrCat("no user \"", name, "\": make it first, or leave --user out"));
  }
  return user;
}

absl::Status WriteFiles(const std::vector<NewFile>& files, const passwd* user) {
  for (const NewFile& file : files) {
    const unsigned mode_bits = file.reader == Reader::kEverybody ? 0644 : 0600;
    H5M_RETURN_IF_ERROR(CreateFile(file.path, file.content, mode_bits));
    if (file.reader == Reader::kServer && user != nullptr) {
      H5M_RETURN_IF_ERROR(GiveTo(file.path, *user));
    }
  }
  return absl::OkStatus();
}

std::string ConfigText(const std::filesystem::path& directory) {
  const std::string base = directory.string();
  return StrCat("# Written by `h5mirrord init`. All keys: h5mirrord --help and h5mirrord(8).\n",
                "#root = \"/var/lib/h5mirror\"\n", "listen = [\"0.0.0.0:7447\"]\n", "tls_cert = \"",
                base, "/server.pem\"\n", "tls_key = \"", base, "/server.key\"\n",
                "tokens_file = \"", base, "/tokens\"\n");
}

std::string Advice(const std::filesystem::path& directory, const std::vector<std::string>& hosts,
                   std::string_view config_note) {
  std::string names;
  for (const std::string& host : hosts) StrAppend(&names, names.empty() ? "" : ", ", host);
  const std::string base = directory.string();
  return StrCat("The certificate is good for: ", names, "\n", config_note,
                "\nStart the server:\n  h5mirrord --config ", base,
                "/h5mirrord.toml --root DIR --listen 0.0.0.0:7447\n",
                "\nOn each client, as the user who runs the programs:\n",
                "  mkdir -p -m 0700 ~/.config/h5mirror\n", "  copy ", base,
                "/ca.pem to ~/.config/h5mirror/ca.pem\n", "  copy ", base,
                "/token  to ~/.config/h5mirror/token, mode 0600\n",
                "The token \"admin\" may read, write and administer. Tokens with fewer rights:\n",
                "  h5mirrord token add NAME --rights read,write --tokens-file ", base, "/tokens\n",
                "Keep ", base,
                "/ca.key away from the network: who has it can pose as this server.\n");
}

}  // namespace

absl::StatusOr<std::string> InitDirectory(const InitOptions& options) {
  const std::filesystem::path directory =
      std::filesystem::absolute(options.directory).lexically_normal();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return ErrnoToStatus(error.value(), StrCat("create ", directory.string()));
  H5M_RETURN_IF_ERROR(RefuseExisting(directory));
  H5M_ASSIGN_OR_RETURN(const passwd* user, FindUser(options.user));

  std::vector<std::string> hosts = options.hosts;
  for (std::string& host : LocalHostNames()) {
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end())
      hosts.push_back(std::move(host));
  }
  H5M_ASSIGN_OR_RETURN(
      const KeyAndCertificate authority,
      MakeAuthority(StrCat("h5mirror CA of ", hosts.front()).substr(0, 64), options.valid_days));
  H5M_ASSIGN_OR_RETURN(const KeyAndCertificate server,
                       MakeServerCertificate(authority, hosts, options.valid_days));
  H5M_RETURN_IF_ERROR(
      WriteFiles({{directory / "ca.key", authority.key_pem, Reader::kOperator},
                  {directory / "ca.pem", authority.certificate_pem, Reader::kEverybody},
                  {directory / "server.key", server.key_pem, Reader::kServer},
                  {directory / "server.pem", server.certificate_pem, Reader::kEverybody}},
                 user));
  H5M_ASSIGN_OR_RETURN(const std::string token,
                       AddToken(directory / "tokens", "admin", Rights::All()));
  if (user != nullptr) H5M_RETURN_IF_ERROR(GiveTo(directory / "tokens", *user));
  H5M_RETURN_IF_ERROR(WriteFiles({{directory / "token", token + "\n", Reader::kOperator}}, user));

  // The operator's own configuration is never touched.
  const std::filesystem::path config = directory / "h5mirrord.toml";
  const absl::Status written = CreateFile(config, ConfigText(directory), 0644);
  if (absl::IsAlreadyExists(written)) {
    return Advice(
        directory, hosts,
        StrCat(config.string(), " exists and was left alone; it wants:\n", ConfigText(directory)));
  }
  H5M_RETURN_IF_ERROR(written);
  return Advice(directory, hosts, "");
}

}  // namespace h5mirror::server
