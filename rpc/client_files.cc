#include "rpc/client_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <string_view>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/driver_keys.h"
#include "base/errno_status.h"
#include "base/server_list.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/toml_file.h"
#include "rpc/munge_token.h"

namespace h5mirror::rpc {
namespace {

constexpr size_t kFileBytesMax = 1 << 20;
// The headers of a call may have 16 KiB in all.
constexpr size_t kTokenBytesMax = 12 << 10;

struct FileText {
  std::string text;
  bool others_may_read = false;
};

// `opening`: how an error of the open begins.
absl::StatusOr<FileText> ReadText(const std::filesystem::path& path,
                                  std::string_view opening = "open") {
  const auto failed = [&path](std::string_view what) {
    return ErrnoToStatus(errno, StrCat(what, " ", std::string_view(path.native())));
  };
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failed(opening);
  absl::Cleanup closer = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0) return failed("stat");
  FileText result{.text = {}, .others_may_read = (info.st_mode & S_IROTH) != 0};
  char buffer[4096];
  while (true) {
    const ssize_t count = read(fd, buffer, sizeof(buffer));
    if (count == 0) return result;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("read");
    result.text.append(buffer, static_cast<size_t>(count));
    if (result.text.size() > kFileBytesMax) {
      return absl::InvalidArgumentError(
          StrCat(std::string_view(path.native()), ": larger than ", kFileBytesMax, " bytes"));
    }
  }
}

absl::Status ReadableByOthers(const std::filesystem::path& path) {
  return absl::PermissionDeniedError(StrCat(std::string_view(path.native()),
                                            ": holds a token and every user may read it; run "
                                            "`chmod o-rwx ",
                                            std::string_view(path.native()), "`"));
}

// `place`: the path, or "PATH:LINE".
absl::Status BadToml(const std::string& place, std::string_view what) {
  return absl::InvalidArgumentError(StrCat(place, ": ", what));
}

// Joins the list as the driver does; unset if an entry is no string.
std::optional<std::string> JoinServers(const toml::array& servers) {
  std::string list;
  for (const toml::node& server : servers) {
    const std::optional<std::string> text = server.value_exact<std::string>();
    if (!text) return std::nullopt;
    list += (list.empty() ? "" : ",") + *text;
  }
  return list;
}

std::string PlaceOf(const std::filesystem::path& path, const toml::node& value) {
  return StrCat(path.native(), ":", value.source().begin.line);
}

absl::Status CheckIsDriverKey(const std::string& place, std::string_view name) {
  if (std::find(kDriverKeys.begin(), kDriverKeys.end(), name) != kDriverKeys.end()) {
    return absl::OkStatus();
  }
  return BadToml(place, StrCat("unknown key `", name, "`; known are ",
                               absl::StrJoin(kDriverKeys, ", ", [](std::string* out, auto key) {
                                 out->append(key);
                               })));
}

// Whether the key is read here; the others are the driver's alone.
bool IsClientKey(std::string_view name) {
  return name == "server" || name == "ca" || name == "token" || name == "root";
}

// The value of a client's key.
absl::Status Take(const std::filesystem::path& path, std::string_view name, const toml::node& value,
                  ClientFile* file) {
  const std::optional<std::string> text = name == "server" && value.is_array()
                                              ? JoinServers(*value.as_array())
                                              : value.value_exact<std::string>();
  if (!text) return BadToml(PlaceOf(path, value), StrCat("`", name, "` is not a string"));
  if (name == "server") file->server = *text;
  if (name == "ca") file->ca = text->empty() ? std::filesystem::path() : path.parent_path() / *text;
  if (name == "token") file->token = *text;
  if (name == "root") file->root = *text;
  if (name == "root" && !text->empty() && text->front() != '/') {
    return BadToml(PlaceOf(path, value), StrCat("root = \"", *text, "\" is not an absolute path"));
  }
  return absl::OkStatus();
}

// Distributes the keys of client.toml.
absl::StatusOr<ClientFile> FromToml(const std::filesystem::path& path, const toml::table& table) {
  ClientFile file;
  for (const auto& [key, value] : table) {
    H5M_RETURN_IF_ERROR(CheckIsDriverKey(PlaceOf(path, value), key.str()));
    if (IsClientKey(key.str())) H5M_RETURN_IF_ERROR(Take(path, key.str(), value, &file));
  }
  return file;
}

// "@FILE" with FILE below `directory` unless it is absolute.
std::string TokenRelativeTo(const std::filesystem::path& directory, const std::string& token) {
  return token.starts_with('@') ? "@" + (directory / token.substr(1)).native() : token;
}

}  // namespace

std::vector<std::filesystem::path> StandardDirectories() {
  std::vector<std::filesystem::path> directories;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    directories.push_back(std::filesystem::path(home) / ".config/h5mirror");
  }
  directories.emplace_back("/etc/h5mirror");
  return directories;
}

bool IsOursToRead(const std::filesystem::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return false;
  return status.st_uid == geteuid() || access(path.c_str(), R_OK) == 0;
}

std::filesystem::path LoginToken(const std::filesystem::path& directory, std::string_view server) {
  std::string name;
  for (const char c : CanonicalServer(server)) {
    const bool is_plain =
        absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-';
    if (is_plain) {
      name += c;
    } else {
      absl::StrAppendFormat(&name, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return directory / "tokens" / name;
}

absl::StatusOr<ClientFile> ReadClientDirectory(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "client.toml";
  ClientFile file;
  absl::StatusOr<FileText> text = ReadText(path);
  if (text.ok()) {
    H5M_ASSIGN_OR_RETURN(const toml::table table, ParseTomlText(text->text, path));
    H5M_ASSIGN_OR_RETURN(file, FromToml(path, table));
    const bool is_secret = file.token && !file.token->empty() && !file.token->starts_with('@') &&
                           !IsMungeSource(*file.token);
    if (is_secret && text->others_may_read) {
      return ReadableByOthers(path);
    }
  } else if (!absl::IsNotFound(text.status())) {
    return std::move(text).status();
  }
  if (file.token) file.token = TokenRelativeTo(directory, *file.token);
  std::error_code ignored;
  if (!file.ca && std::filesystem::exists(directory / "ca.pem", ignored)) {
    file.ca = directory / "ca.pem";
  }
  if (!file.token && IsOursToRead(directory / "token")) {
    file.token = "@" + (directory / "token").native();
  }
  // A key that is another user's is not meant for this one, as the administrator's token.
  if (std::filesystem::exists(directory / "client.pem", ignored) &&
      IsOursToRead(directory / "client.key")) {
    file.certificate = directory / "client.pem";
    file.key = directory / "client.key";
  }
  return file;
}

absl::StatusOr<std::optional<std::string>> ReadServerKey(const std::filesystem::path& path) {
  H5M_ASSIGN_OR_RETURN(const FileText text, ReadText(path));
  H5M_ASSIGN_OR_RETURN(const toml::table table, ParseTomlText(text.text, path));
  H5M_ASSIGN_OR_RETURN(ClientFile file, FromToml(path, table));
  return std::move(file.server);
}

absl::StatusOr<std::string> ReadCa(const std::filesystem::path& path) {
  H5M_ASSIGN_OR_RETURN(FileText file, ReadText(path, "ca: open"));
  if (file.text.find("-----BEGIN CERTIFICATE-----") == std::string::npos) {
    return BadToml(path,
                   "holds no PEM certificate; give the server's ca.pem, which h5mirrord init made");
  }
  return file.text;  // A copy: GCC 12 at -O2 takes the move for an overrun (-Warray-bounds).
}

absl::StatusOr<std::string> ReadClientCertificate(const std::filesystem::path& path) {
  H5M_ASSIGN_OR_RETURN(FileText file, ReadText(path, "client certificate: open"));
  if (file.text.find("-----BEGIN CERTIFICATE-----") == std::string::npos) {
    return BadToml(path, "holds no PEM certificate; give the one of your site's authority");
  }
  return file.text;
}

absl::StatusOr<std::string> ReadClientKey(const std::filesystem::path& path) {
  H5M_ASSIGN_OR_RETURN(FileText file, ReadText(path, "client key: open"));
  if (file.others_may_read) return ReadableByOthers(path);
  if (file.text.find("PRIVATE KEY-----") == std::string::npos) {
    return BadToml(path, "holds no PEM private key; give the one of client.pem beside it");
  }
  return file.text;
}

absl::StatusOr<std::string> ReadToken(const std::string& token) {
  std::string text = token;
  std::string origin = "the token";
  if (token.starts_with('@')) {
    const std::filesystem::path path = token.substr(1);
    H5M_ASSIGN_OR_RETURN(FileText file, ReadText(path, "token: open"));
    if (file.others_may_read) return ReadableByOthers(path);
    text = std::move(file.text);
    origin = StrCat("the token in ", std::string_view(path.native()));
  }
  absl::StripAsciiWhitespace(&text);
  const auto visible = [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); };
  if (text.empty() || text.size() > kTokenBytesMax ||
      !std::all_of(text.begin(), text.end(), visible)) {
    return absl::InvalidArgumentError(
        StrCat(origin, " is not 1..", kTokenBytesMax,
               " visible ASCII characters; it is one line of plain text, as `h5mirrord token add` "
               "prints it"));
  }
  return text;
}

}  // namespace h5mirror::rpc
