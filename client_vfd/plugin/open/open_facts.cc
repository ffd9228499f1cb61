#include "client_vfd/plugin/open/open_facts.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "client_vfd/plugin/config/real_path.h"
#include "client_vfd/plugin/host/this_process.h"
#include "client_vfd/plugin/modes/embedded_file.h"
#include "client_vfd/plugin/modes/local_file.h"
#include "client_vfd/plugin/modes/swmr.h"
#include "client_vfd/plugin/open/reader_open.h"

namespace h5mirror::vfd {
namespace {

// The lock is not kept.
bool HasLockOfOther(const char* name) {
  const int fd = open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const int result = flock(fd, LOCK_EX | LOCK_NB);
  const int error = errno;
  close(fd);
  return result < 0 && error == EWOULDBLOCK;
}

}  // namespace

OpenRequest RequestOf(const char* name, unsigned flags) {
  OpenRequest request;
  request.name = name;
  request.writes = (flags & H5F_ACC_RDWR) != 0;
  request.truncates = (flags & H5F_ACC_TRUNC) != 0;
  request.makes_new = (flags & H5F_ACC_EXCL) != 0;
  request.creates = (flags & H5F_ACC_CREAT) != 0;
  request.writes_swmr = (flags & H5F_ACC_SWMR_WRITE) != 0;
  request.reads_swmr = (flags & H5F_ACC_SWMR_READ) != 0;
  return request;
}

const std::optional<ReaderTarget>& FileFacts::server_file() {
  if (!has_asked_rules_) {
    server_file_ = FindReaderTarget(*call_.config, call_.config_text, call_.request.name,
                                    HostName(), call_.root);
    has_asked_rules_ = true;
  }
  return server_file_;
}

const struct stat* FileFacts::before() {
  if (!has_looked_) exists_ = stat(call_.request.name.c_str(), &before_) == 0;
  has_looked_ = true;
  return exists_ ? &before_ : nullptr;
}

const std::string& FileFacts::real_path() {
  if (!real_path_) real_path_ = RealPathOfMissing(call_.request.name);
  return *real_path_;
}

FileKey FileFacts::key() {
  return Exists() ? FileKey{&call_.host, before_.st_dev, before_.st_ino} : FileKey();
}

bool FileFacts::IsOpenHere() { return Exists() && IsOpenFile(key()); }

int FileFacts::WhyNotWritable() {
  return access(call_.request.name.c_str(), W_OK) == 0 ? 0 : errno;
}

bool FileFacts::IsLockedByOther() {
  return WantedLocking(call_.host, call_.fapl) == Locking::kYes &&
         HasLockOfOther(call_.request.name.c_str());
}

Problem FileFacts::SwmrWriterAtWork() {
  const SwmrLook look = LookForSwmrWriter(call_.request.name.c_str());
  if (look.writer == SwmrLook::Writer::kNone || look.writer == SwmrLook::Writer::kGone) {
    return std::nullopt;
  }
  return WhyNotOpened(look, call_.request.name);
}

Problem FileFacts::HistoryBeside() { return EmbeddedHistoryBeside(real_path()); }
Problem FileFacts::EditBrokenOff() { return vfd::EditBrokenOff(real_path()); }

}  // namespace h5mirror::vfd
