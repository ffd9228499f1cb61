// The superblock's flags of a file that is written for SWMR. This driver has no `lock` callback, so
// HDF5 neither sets nor checks them at an open. They are needed nevertheless: an SWMR writer gives
// up the file's lock, and while it writes, the superblock has an old end of file. Another program
// that opens the file for writing and closes it would cut it off there.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_SWMR_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_SWMR_H_

#include <optional>
#include <string>
#include <string_view>

#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/modes/under_file.h"

namespace h5mirror::vfd {

// Sets the flags of one open file as HDF5 does with sec2. Not thread-safe; called as the file's
// driver is.
class SwmrFlags {
 public:
  enum class Opened { kPlain, kForSwmr };  // kForSwmr: with H5F_ACC_SWMR_WRITE
  explicit SwmrFlags(Opened opened = Opened::kPlain) : opened_(opened) {}

  void OnTruncate(hbool_t closing) { closing_ = closing != 0; }
  // The bytes to write instead of `bytes`, which begin with a superblock; unset: `bytes`.
  std::optional<std::string> Marked(std::string_view bytes) const;
  // True, before a write: mark the superblock in the file first. HDF5 writes it at the close, and
  // at flushes of the whole file.
  bool IsToBeMarked() const { return opened_ == Opened::kForSwmr && !marked_ && !closing_; }
  void OnMarked() { marked_ = true; }

 private:
  Opened opened_;
  bool marked_ = false;
  bool closing_ = false;  // the superblock that HDF5 writes now is that of a closed file
};

// The state of SWMR of a local file that is opened for writing, by its superblock.
struct SwmrLook {
  enum class Writer {
    kNone,          // the superblock has no flag of an SWMR writer
    kGone,          // it has, and no other process has the file open: its writer was killed
    kMaybeAtWork,   // another process has the file open
    kCannotBeTold,  // unknown: `why`
  };
  Writer writer = Writer::kNone;
  int why_errno = 0;
  haddr_t offset = 0;
  // kGone: the bytes to write at `offset`: a superblock of a closed file, with all of the file.
  std::string closed;
};

// The superblock of the file; unset: it has none.
struct SuperblockAt {
  haddr_t offset;
  std::string bytes;
};
std::optional<SuperblockAt> FindSuperblock(UnderFile& under);

// Whether another descriptor than `fd` has its file open, on this machine; kNone: none.
SwmrLook::Writer WhoHasOpen(int fd, int* why_errno);

// Looks at the file. `fd`, for WhoHasOpen(): its descriptor, open for writing; -1:
// the caller knows that no other process has it open.
SwmrLook LookForSwmrWriter(UnderFile& under, int fd);

// The same for a file that is not open yet. kNone, if it cannot be opened for writing.
SwmrLook LookForSwmrWriter(const char* path);

// The message for the user if a file may not be opened because an SWMR writer may have it.
std::string WhyNotOpened(const SwmrLook& look, const std::string& path);
std::string WhatWasMended(const std::string& path);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_SWMR_H_
