#include "cli/login/login_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "absl/time/clock.h"
#include "base/record_files.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "nlohmann/json.hpp"
#include "rpc/client_files.h"

namespace h5mirror::tools {
namespace {

using nlohmann::json;

constexpr size_t kLoginBytesMax = 256 << 10;
constexpr absl::Duration kLockPause = absl::Milliseconds(50);

json ToJson(const KeptLogin& login) {
  const LoginSettings& settings = login.settings;
  json object = {{"token_file", settings.token_file},
                 {"token_command", settings.token_command},
                 {"issuer", settings.issuer},
                 {"client_id", settings.client_id},
                 {"scope", settings.scope},
                 {"issuer_ca", settings.issuer_ca},
                 {"takes_id_token", settings.takes_id_token},
                 {"token_endpoint", login.token_endpoint},
                 {"refresh_token", login.refresh_token}};
  if (login.obtained != absl::InfinitePast()) {
    object["obtained"] = absl::ToUnixSeconds(login.obtained);
  }
  if (login.expires != absl::InfiniteFuture()) {
    object["expires"] = absl::ToUnixSeconds(login.expires);
  }
  return object;
}

// A member of another type counts as none.
template <typename T>
void Take(const json& object, const char* name, T* value) {
  const auto member = object.find(name);
  if (member == object.end()) return;
  const json sample = *value;
  if (member->type() == sample.type()) *value = member->get<T>();
}

void TakeTime(const json& object, const char* name, absl::Time* time) {
  const auto member = object.find(name);
  if (member == object.end() || !member->is_number_integer()) return;
  *time = absl::FromUnixSeconds(member->get<int64_t>());
}

// A file that root makes in a user's directory, under sudo, is that user's: as base/record_files.h
// does it. `fd` was just made there.
void LeaveToOwner(int fd, const std::filesystem::path& directory) {
  struct stat owner {};
  if (geteuid() != 0 || stat(directory.c_str(), &owner) != 0 || owner.st_uid == 0) return;
  // Where root may not, it stays root's.
  if (fchown(fd, owner.st_uid, owner.st_gid) != 0) return;
}

// Makes a directory, unless there is one.
absl::Status MakeDirectory(const std::filesystem::path& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) != 0) {
    return errno == EEXIST ? absl::OkStatus() : RecordFileError("make", path);
  }
  const OwnedFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (fd.valid()) LeaveToOwner(fd.get(), path.parent_path());
  return absl::OkStatus();
}

// Opens a file that it may have to make.
OwnedFd OpenLock(const std::filesystem::path& path) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  OwnedFd made(open(path.c_str(), kFlags | O_CREAT | O_EXCL, 0600));
  if (!made.valid() && errno == EEXIST) return OwnedFd(open(path.c_str(), kFlags));
  // Never a file that was there before: it could be a link to another file of root's.
  if (made.valid()) LeaveToOwner(made.get(), path.parent_path());
  return made;
}

absl::Status TakeWords(const json& words, std::vector<std::string>* out) {
  for (const json& word : words) {
    if (!word.is_string()) return absl::DataLossError("a word is no text");
    out->push_back(word.get<std::string>());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LoginStore> LoginStore::Open(std::string_view server) {
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    return absl::FailedPreconditionError("HOME is not set, and a login is kept below it: set HOME");
  }
  const std::filesystem::path directory = std::filesystem::path(home) / ".config/h5mirror";
  LoginStore store(rpc::LoginToken(directory, server));
  // The last one tells whether the others are there.
  MakeDirectory(directory.parent_path(), 0755).IgnoreError();
  MakeDirectory(directory, 0755).IgnoreError();
  H5M_RETURN_IF_ERROR(MakeDirectory(store.token_path_.parent_path(), 0700));
  return store;
}

std::filesystem::path LoginStore::PathOf(std::string_view extension) const {
  return StrCat(token_path_.native(), extension);
}

absl::Status LoginStore::Lock(absl::Duration timeout) {
  const std::filesystem::path path = PathOf(".lock");
  OwnedFd fd = OpenLock(path);
  if (!fd.valid()) return RecordFileError("open", path);
  const absl::Time deadline = absl::Now() + timeout;
  // Over NFS, flock() is a lock of the server's, for all machines.
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return RecordFileError("lock", path);
    if (absl::Now() >= deadline) {
      return absl::UnavailableError(
          StrCat(path.native(), ": another h5mirror login goes on; try again when it has ended"));
    }
    absl::SleepFor(kLockPause);
  }
  lock_ = std::move(fd);
  return absl::OkStatus();
}

absl::StatusOr<KeptLogin> LoginStore::Read() const {
  const std::filesystem::path path = PathOf(".login");
  H5M_ASSIGN_OR_RETURN(const std::string text, ReadRecordFile(path, kLoginBytesMax));
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  KeptLogin login;
  LoginSettings& settings = login.settings;
  absl::Status words = absl::DataLossError("no object");
  if (object.is_object())
    words = TakeWords(object.value("token_command", json::array()), &settings.token_command);
  if (!words.ok() || text.size() > kLoginBytesMax) {
    return absl::DataLossError(
        StrCat(path.native(), ": is no kept login: run `h5mirror login` again"));
  }
  Take(object, "token_file", &settings.token_file);
  Take(object, "issuer", &settings.issuer);
  Take(object, "client_id", &settings.client_id);
  Take(object, "scope", &settings.scope);
  Take(object, "issuer_ca", &settings.issuer_ca);
  Take(object, "takes_id_token", &settings.takes_id_token);
  Take(object, "token_endpoint", &login.token_endpoint);
  Take(object, "refresh_token", &login.refresh_token);
  TakeTime(object, "obtained", &login.obtained);
  TakeTime(object, "expires", &login.expires);
  return login;
}

absl::Status LoginStore::Save(const KeptLogin& login) const {
  using Handler = json::error_handler_t;
  return ReplaceRecordFile(PathOf(".login"),
                           ToJson(login).dump(2, ' ', false, Handler::replace) + "\n",
                           RecordSync::kSynced);
}

absl::Status LoginStore::WriteToken(std::string_view token) const {
  return ReplaceRecordFile(token_path_, StrCat(token, "\n"), RecordSync::kSynced);
}

absl::StatusOr<bool> LoginStore::Remove() const {
  bool was_there = false;
  // The means of renewal go first: half of a logout leaves a token that ends by itself.
  for (const std::filesystem::path& path : {PathOf(".login"), token_path_}) {
    if (unlink(path.c_str()) == 0) {
      was_there = true;
    } else if (errno != ENOENT) {
      return RecordFileError("remove", path);
    }
  }
  return was_there;
}

}  // namespace h5mirror::tools
