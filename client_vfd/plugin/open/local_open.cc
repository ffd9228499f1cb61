#include "client_vfd/plugin/open/local_open.h"

#include "client_vfd/plugin/modes/local_file.h"

namespace h5mirror::vfd {
namespace {

// sec2 locks in a callback that comes right after the open. Our driver has no such callback, so
// that HDF5 neither sets nor checks the superblock's status flags.
bool TakeLock(const OpenCall& call, UnderFile& under) {
  if (WantedLocking(call.host, call.fapl) == Locking::kNo) return true;
  if (under.Lock((call.flags & H5F_ACC_RDWR) != 0) < 0) return false;
  // H5F_open does the same for SWMR writers, so that readers can open the file.
  if (call.request.writes_swmr) under.Unlock();
  return true;
}

// HDF5 takes a file's size at the open, before the lock. If another program made the file longer
// and closed it in between, HDF5 calls the file truncated. A program that makes the file anew knows
// its size anyway. Beside an SWMR writer no program can know it.
bool KnowsItsSize(const LocalOpened& opened, unsigned flags) {
  constexpr unsigned kOthers =
      H5F_ACC_TRUNC | H5F_ACC_EXCL | H5F_ACC_SWMR_WRITE | H5F_ACC_SWMR_READ;
  struct stat locked {};
  if ((flags & kOthers) != 0 || opened.fd < 0 || fstat(opened.fd, &locked) != 0) return true;
  return opened.under->Eof(H5FD_MEM_DEFAULT) == static_cast<haddr_t>(locked.st_size);
}

}  // namespace

LocalOpened OpenLocked(const OpenCall& call) {
  constexpr int kAttempts = 100;
  LocalOpened opened;
  for (int attempt = 1;; ++attempt) {
    opened.under = OpenLocal(call.host, *call.config, call.request.name.c_str(), call.flags,
                             call.fapl, call.maxaddr);
    if (opened.under == nullptr) return opened;
    opened.fd = opened.under->Descriptor();
    if (opened.fd >= 0 && fstat(opened.fd, &opened.status) == 0) {
      opened.key = {&call.host, opened.status.st_dev, opened.status.st_ino};
    }
    if (IsOpenFile(opened.key)) return opened;
    const bool is_locked = TakeLock(call, *opened.under);
    // If the file never rests, because its locks are off, HDF5 itself reports the problem.
    if (is_locked && (attempt == kAttempts || KnowsItsSize(opened, call.flags))) return opened;
    opened.under.reset();
    if (!is_locked) return opened;
  }
}

}  // namespace h5mirror::vfd
