#include "client_vfd/session/descriptor_mark.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace h5mirror::vfd {

FileIdentity IdentityOf(int fd) {
  struct stat st {};
  return fstat(fd, &st) == 0 ? FileIdentity{st.st_dev, st.st_ino} : FileIdentity();
}

bool IsStill(int fd, const FileIdentity& file) {
  struct stat st {};
  if (fstat(fd, &st) != 0) return errno != EBADF;  // ESTALE is the file's, on a network.
  return FileIdentity{st.st_dev, st.st_ino} == file;
}

void DescriptorMark::Set() {
  if (fd_ >= 0) return;
  // A memory file has an inode of its own, which no other open file has.
  int fd = memfd_create("h5mirror", MFD_CLOEXEC);
  if (fd >= 0 && fd <= STDERR_FILENO) {  // The program has closed a standard stream.
    const int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    fd = above;
  }
  if (fd < 0) return;
  file_ = IdentityOf(fd);
  fd_ = fd;
}

bool DescriptorMark::is_there() const {
  if (is_lost_) return false;
  const int fd = fd_;
  if (fd >= 0 && !IsStill(fd, file_)) is_lost_ = true;
  return !is_lost_;
}

}  // namespace h5mirror::vfd
