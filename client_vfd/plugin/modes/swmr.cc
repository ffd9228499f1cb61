#include "client_vfd/plugin/modes/swmr.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/superblock_image.h"

namespace h5mirror::vfd {
namespace {

// `read(offset, out, size)` is false where it cannot be read.
template <typename Read>
std::optional<SuperblockAt> Find(Read read, uint64_t size_bytes) {
  for (uint64_t offset = 0; offset < size_bytes; offset = offset == 0 ? 512 : 2 * offset) {
    std::string bytes(std::min<uint64_t>(kSuperblockImageBytes, size_bytes - offset), '\0');
    if (!read(offset, bytes.data(), bytes.size())) break;
    if (LooksLikeSuperblock(bytes) == HasSuperblock::kYes) return SuperblockAt{offset, bytes};
  }
  return std::nullopt;
}

// fd -1: the caller knows that nobody else has the file open.
SwmrLook LookAt(const std::optional<SuperblockAt>& superblock, uint64_t size_bytes, int fd) {
  SwmrLook look;
  if (!superblock || SwmrFlagIn(superblock->bytes) == HasSwmrFlag::kNo) return look;
  look.writer = SwmrLook::Writer::kGone;
  look.offset = superblock->offset;
  look.closed = ClosedSuperblock(superblock->bytes, look.offset, size_bytes).value_or("");
  if (fd < 0) return look;
  const SwmrLook::Writer other = WhoHasOpen(fd, &look.why_errno);
  if (other != SwmrLook::Writer::kNone) look.writer = other;
  return look;
}

}  // namespace

std::optional<std::string> SwmrFlags::Marked(std::string_view bytes) const {
  const bool writes_for_swmr =
      SwmrFlagIn(bytes) == HasSwmrFlag::kYes || (opened_ == Opened::kForSwmr && !closing_);
  if (!writes_for_swmr) return std::nullopt;
  std::optional<std::string> marked = SwmrSuperblock(bytes);
  if (marked) marked->append(bytes.substr(marked->size()));
  return marked;
}

// An SWMR writer holds no lock, but has the file open. The kernel grants a write lease only if no
// other descriptor is open (fcntl(2)), so this asks for one and gives it back at once. A program
// that opens the file within that moment waits for its end. The kernel then sends this process a
// signal that is ignored by default.
SwmrLook::Writer WhoHasOpen(int fd, int* why_errno) {
  struct statfs system {};
  // The kernel here does not know of programs on other machines that have it open.
  if (fstatfs(fd, &system) != 0 || system.f_type == FUSE_SUPER_MAGIC) {
    *why_errno = EOPNOTSUPP;
    return SwmrLook::Writer::kCannotBeTold;
  }
  const int signal_before = fcntl(fd, F_GETSIG);
  const bool granted = fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
  const int error = errno;
  if (granted) fcntl(fd, F_SETLEASE, F_UNLCK);
  if (signal_before >= 0) fcntl(fd, F_SETSIG, signal_before);
  if (granted) return SwmrLook::Writer::kNone;
  *why_errno = error;
  return error == EAGAIN ? SwmrLook::Writer::kMaybeAtWork : SwmrLook::Writer::kCannotBeTold;
}

std::optional<SuperblockAt> FindSuperblock(UnderFile& under) {
  const auto read = [&under](uint64_t offset, char* out, size_t size) {
    return under.Read(H5FD_MEM_SUPER, H5P_DEFAULT, offset, size, out) >= 0;
  };
  return Find(read, under.Eof(H5FD_MEM_SUPER));
}

SwmrLook LookForSwmrWriter(UnderFile& under, int fd) {
  return LookAt(FindSuperblock(under), under.Eof(H5FD_MEM_SUPER), fd);
}

SwmrLook LookForSwmrWriter(const char* path) {
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return {};
  struct stat status {};
  SwmrLook look;
  if (fstat(fd, &status) == 0) {
    const auto size_bytes = static_cast<uint64_t>(status.st_size);
    const auto read = [fd](uint64_t offset, char* out, size_t size) {
      return pread(fd, out, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
    };
    look = LookAt(Find(read, size_bytes), size_bytes, fd);
  }
  close(fd);
  return look;
}

std::string WhyNotOpened(const SwmrLook& look, const std::string& path) {
  const std::string state =
      path +
      " has the mark of an SWMR writer. A second writer would cut off the data of the first one. ";
  const std::string recover =
      "; where it is mirrored, h5mirror recover " + path + " brings its last cut back";
  if (look.writer == SwmrLook::Writer::kMaybeAtWork) {
    return state +
           "Somebody has the file open: wait for the writer's close, or, if it was killed, close "
           "what reads the file (fuser " +
           path + " names them) and try again" + recover;
  }
  return state + "Whether that one is still there cannot be told here (a lease: " +
         std::strerror(look.why_errno) +
         "): if it was killed, open the file as its owner, on a local filesystem" + recover;
}

std::string WhatWasMended(const std::string& path) {
  return path +
         " was left by an SWMR writer that was killed: its superblock is put in order, so "
         "that all that was written is in the file";
}

}  // namespace h5mirror::vfd
