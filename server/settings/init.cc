#include "server/settings/init.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/env.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/settings/certificates.h"
#include "server/settings/secret_file.h"
#include "server/settings/token_file.h"

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
                 "NAME`, for one more name of this machine or a newer certificate `h5mirrord init "
                 "--host NAME`; to begin anew move ",
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
  const std::string base = directory.string();
  return StrCat("The certificate is good for: ", absl::StrJoin(hosts, ", "), "\n", config_note,
                "\nStart the server:\n  h5mirrord --config ", base,
                "/h5mirrord.toml --root DIR --listen 0.0.0.0:7447\n",
                "\nA token for each client, which may not administer:\n",
                "  (umask 077; h5mirrord token add NAME --rights read,write --tokens-file ", base,
                "/tokens > NAME.token)\n",
                "\nOn each client, as the user that runs the programs:\n",
                "  mkdir -p -m 0700 ~/.config/h5mirror\n", "  copy ", base,
                "/ca.pem to ~/.config/h5mirror/ca.pem\n",
                "  copy NAME.token to ~/.config/h5mirror/token, mode 0600\n", "The token in ", base,
                "/token may administer, too: it is for you, not for programs.\n", "Keep ", base,
                "/ca.key away from the network: with it anybody can pose as this server.\n");
}

// Adds those of `more` that are not in `hosts` yet.
void AddHosts(std::vector<std::string>& hosts, const std::vector<std::string>& more) {
  for (const std::string& host : more) {
    if (std::find(hosts.begin(), hosts.end(), host) == hosts.end()) hosts.push_back(host);
  }
}

// Keeps the file at `path` under another name, and puts `content` in its place with its mode and
// owner: at any moment there is one of the two. Returns the old one's name.
absl::StatusOr<std::filesystem::path> KeepAndReplace(const std::filesystem::path& path,
                                                     const std::string& content) {
  struct stat old {};
  if (stat(path.c_str(), &old) != 0) return ErrnoToStatus(errno, StrCat("look at ", path.string()));
  const std::string time = absl::FormatTime("%Y%m%dT%H%M%E3SZ", absl::Now(), absl::UTCTimeZone());
  const std::filesystem::path kept = StrCat(path.string(), ".until-", time);
  const std::filesystem::path fresh = StrCat(path.string(), ".new-", time);
  H5M_RETURN_IF_ERROR(CreateFile(fresh, content, old.st_mode & 0777));
  if (chown(fresh.c_str(), old.st_uid, old.st_gid) != 0 || link(path.c_str(), kept.c_str()) != 0 ||
      rename(fresh.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(fresh.c_str());
    return ErrnoToStatus(error, StrCat("replace ", path.string()));
  }
  return kept;
}

// One more server certificate of the authority that is there.
absl::StatusOr<std::string> SignAnew(const std::filesystem::path& directory,
                                     const InitOptions& options) {
  for (const char* name : {"ca.key", "ca.pem", "server.key", "server.pem"}) {
    if (std::filesystem::exists(directory / name)) continue;
    return absl::NotFoundError(
        StrCat((directory / name).string(),
               " is not there: a new certificate takes ca.key and ca.pem, and replaces server.key "
               "and server.pem. Put it back for as long as this takes; where there never was one, "
               "run `h5mirrord init` for another, empty directory"));
  }
  H5M_ASSIGN_OR_RETURN(const std::string authority_key, ReadSmallFile(directory / "ca.key"));
  H5M_ASSIGN_OR_RETURN(const std::string authority, ReadSmallFile(directory / "ca.pem"));
  H5M_RETURN_IF_ERROR(CheckPair({authority_key, authority}));
  H5M_ASSIGN_OR_RETURN(const std::string old, ReadSmallFile(directory / "server.pem"));
  H5M_ASSIGN_OR_RETURN(const std::vector<std::string> old_hosts, HostsOf(old));
  std::vector<std::string> hosts = options.hosts;
  AddHosts(hosts, old_hosts);
  AddHosts(hosts, LocalHostNames());
  H5M_ASSIGN_OR_RETURN(
      const KeyAndCertificate server,
      MakeServerCertificate({authority_key, authority}, hosts, options.valid_days));
  H5M_ASSIGN_OR_RETURN(const auto kept_key,
                       KeepAndReplace(directory / "server.key", server.key_pem));
  H5M_ASSIGN_OR_RETURN(const auto kept_certificate,
                       KeepAndReplace(directory / "server.pem", server.certificate_pem));
  return StrCat(
      "The new certificate is good for: ", absl::StrJoin(hosts, ", "), "\n",
      "It is of the same CA, so clients keep their ca.pem; tokens and h5mirrord.toml stay "
      "as they are.\nThe old pair is kept:\n  ",
      kept_key.string(), "\n  ", kept_certificate.string(),
      "\nA running h5mirrord takes the new one within a minute.\n");
}

// With the directories above that are not there either. The server's user passes through them, and
// users who fetch ca.pem, whatever the umask is here.
absl::Status MakeForAll(const std::filesystem::path& directory) {
  std::filesystem::path there = directory;
  std::error_code error;
  while (!std::filesystem::exists(there, error) && there.has_relative_path()) {
    if (error) return ErrnoToStatus(error.value(), StrCat("look at ", there.string()));
    there = there.parent_path();
  }
  if (there == directory) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const auto tree, Env::Posix().OpenTree(there));
  std::filesystem::path name;
  for (const std::filesystem::path& part : directory.lexically_relative(there)) {
    if (part.empty() || part == ".") continue;
    name /= part;
    H5M_RETURN_IF_ERROR(tree->MakeDirectory(name.native(), 0755));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> InitDirectory(const InitOptions& options) {
  const std::filesystem::path directory =
      std::filesystem::absolute(options.directory).lexically_normal();
  H5M_RETURN_IF_ERROR(MakeForAll(directory));
  if (const absl::Status existing = RefuseExisting(directory); !existing.ok()) {
    if (options.hosts.empty()) return existing;
    return SignAnew(directory, options);
  }
  H5M_ASSIGN_OR_RETURN(const passwd* user, FindUser(options.user));

  std::vector<std::string> hosts = options.hosts;
  AddHosts(hosts, LocalHostNames());
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
