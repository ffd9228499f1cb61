#include "h5perf_serial/data_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/errno_status.h"
#include "base/strings.h"

namespace h5mirror::perf {
namespace {

constexpr char kName[] = "#sio_tmp";

const char* SetOrNull(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

bool IsDirectory(const std::string& path) {
  struct stat found = {};
  return stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

std::string WithoutDoubleSlashes(const std::string& path) {
  std::string squeezed;
  for (const char c : path) {
    if (c != '/' || squeezed.empty() || squeezed.back() != '/') squeezed += c;
  }
  return squeezed;
}

}  // namespace

std::string DataFileBase() { return BelowPrefix(kName, "HDF5_PREFIX"); }

std::string BelowPrefix(const char* name, const char* variable) {
  const char* prefix = SetOrNull(variable);
  if (prefix == nullptr) return name;
  const char* user = SetOrNull("USER");
  if (user == nullptr) user = SetOrNull("LOGIN");
  std::string directory = prefix;
  if (user != nullptr) {
    const std::string own = StrCat(prefix, "/", user);
    if (mkdir(own.c_str(), 0755) == 0 || IsDirectory(own)) directory = own;
  }
  return WithoutDoubleSlashes(StrCat(directory, "/", name));
}

std::string PrefixText(const char* variable) {
  const char* prefix = getenv(variable);
  return prefix == nullptr ? "not set" : prefix;
}

bool KeepsFiles() { return getenv("HDF5_NOCLEANUP") != nullptr; }

absl::Status SyncFiles(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return ErrnoToStatus(errno, StrCat("open ", file));
    const int error = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    if (error != 0) return ErrnoToStatus(error, StrCat("fsync ", file));
  }
  return absl::OkStatus();
}

Dropped DropCaches(const std::vector<std::string>& files) {
  sync();
  const int all = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
  if (all >= 0) {
    const bool dropped = write(all, "1", 1) == 1;
    close(all);
    if (dropped) return Dropped::kEverything;
  }
  for (const std::string& file : files) {
    const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
  }
  return Dropped::kDataFiles;
}

}  // namespace h5mirror::perf
