#include "rpc/unix_socket_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/clock.h"
#include "base/name_service.h"
#include "base/strings.h"

namespace h5mirror::rpc {
namespace {

constexpr absl::Duration kTimeOfAStart = absl::Milliseconds(200);

bool IsKeptOut(const std::string& path) {
  return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0 && errno == EACCES;
}

// The number, where the name service has no name or fails.
std::string UserName(uid_t uid) {
  std::vector<char> buffer;
  passwd record{};
  passwd* found = nullptr;
  const absl::Status asked =
      FetchFromNameService("the socket's owner", buffer, record, found,
                           [uid](auto&&... out) { return getpwuid_r(uid, out...); });
  return asked.ok() && found != nullptr ? std::string(found->pw_name) : StrCat(uid);
}

std::string GroupName(gid_t gid) {
  std::vector<char> buffer;
  group record{};
  group* found = nullptr;
  const absl::Status asked =
      FetchFromNameService("the socket's group", buffer, record, found,
                           [gid](auto&&... out) { return getgrgid_r(gid, out...); });
  return asked.ok() && found != nullptr ? std::string(found->gr_name) : StrCat(gid);
}

// As `ls -l` writes them: "srw-rw----".
std::string PermissionsText(mode_t mode) {
  std::string text = S_ISSOCK(mode) ? "s" : "-";
  for (int bit = 8; bit >= 0; --bit) text += (mode >> bit & 1) != 0 ? "xwr"[bit % 3] : '-';
  return text;
}

std::string WhyNot(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) {
    return StrCat("you may not enter ", std::filesystem::path(path).parent_path().string(),
                  ", or a directory above it: ask the server's operator for a way in");
  }
  const std::string group = GroupName(found.st_gid);
  const std::string join =
      (found.st_mode & S_IWGRP) != 0 ? StrCat("join the group ", group, ", or ") : "";
  return StrCat("you may not open this socket (", PermissionsText(found.st_mode), " ",
                UserName(found.st_uid), " ", group, "): ", join,
                "have the server's socket_mode changed");
}

}  // namespace

absl::Status CheckMayOpenSocket(const ClientOptions& options) {
  constexpr std::string_view kScheme = "unix:";
  if (!options.target.starts_with(kScheme)) return absl::OkStatus();
  const std::string path = options.target.substr(kScheme.size());
  if (!IsKeptOut(path)) return absl::OkStatus();
  // A server that starts makes the socket, and gives it its group and permissions after that.
  absl::SleepFor(kTimeOfAStart);
  if (!IsKeptOut(path)) return absl::OkStatus();
  const std::string origin = options.origin.empty() ? "" : StrCat(" (", options.origin, ")");
  return absl::PermissionDeniedError(
      StrCat("no connection to ", options.server, origin, ": ", WhyNot(path)));
}

}  // namespace h5mirror::rpc
