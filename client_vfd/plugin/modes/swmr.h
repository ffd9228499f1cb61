// What HDF5 leaves to a driver's `lock` callback where a file is written for SWMR. Ours has none,
// so that the library neither sets nor checks the superblock's flags at open. For SWMR writers both
// are needed all the same: they give up the file's lock, and while they write, the superblock's end
// of file is an old one, at which HDF5 cuts off the file of whoever opens it for writing and closes
// it.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_SWMR_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_SWMR_H_

#include <optional>
#include <string>
#include <string_view>

#include "client_vfd/plugin/host/hdf5_headers.h"

namespace h5mirror::vfd {

// Sets the flags of one open file as HDF5 does with sec2. Called as its driver is.
class SwmrFlags {
 public:
  enum class Opened { kPlain, kForSwmr };  // kForSwmr: with H5F_ACC_SWMR_WRITE
  explicit SwmrFlags(Opened opened = Opened::kPlain) : opened_(opened) {}

  void OnTruncate(hbool_t closing) { closing_ = closing != 0; }
  // What to write instead of `bytes`, which begin with a superblock; unset: `bytes`.
  std::optional<std::string> Marked(std::string_view bytes) const;
  // Before a write: whether the superblock that the file has is to be marked first. HDF5 writes it
  // at the close, and at flushes of the whole file.
  bool IsToBeMarked() const { return opened_ == Opened::kForSwmr && !marked_ && !closing_; }
  void OnMarked() { marked_ = true; }

 private:
  Opened opened_;
  bool marked_ = false;
  bool closing_ = false;  // the superblock that HDF5 writes now is that of a closed file
};

// The superblock of a local file that is opened for writing, as far as SWMR goes.
struct SwmrLook {
  enum class Writer {
    kNone,          // its superblock has no flag of an SWMR writer
    kGone,          // it has, and nobody else has the file open: its writer was killed
    kMaybeAtWork,   // somebody else has it open
    kCannotBeTold,  // nobody can say: `why`
  };
  Writer writer = Writer::kNone;
  int why_errno = 0;
  haddr_t offset = 0;
  // kGone: what to put over the superblock at `offset`, so that all of the file is in it.
  std::string closed;
};

// The superblock of the file below `under`; unset: it has none.
struct SuperblockAt {
  haddr_t offset;
  std::string bytes;
};
std::optional<SuperblockAt> FindSuperblock(H5FD_t* under);

// Whether anybody but `fd` has its file open, on this machine; kNone: nobody.
SwmrLook::Writer WhoHasOpen(int fd, int* why_errno);

// Looks at the file below `under`. `fd`, for WhoHasOpen(): its own, of one that is open for
// writing, or -1 where the caller knows that nobody else has it open.
SwmrLook LookForSwmrWriter(H5FD_t* under, int fd);

// The same of a file that is yet to be opened. It cannot be told of one that is not there.
SwmrLook LookForSwmrWriter(const char* path);

// For the user, why a file of which nobody knows whether it is being written cannot be opened.
std::string WhyNotOpened(const SwmrLook& look, const std::string& path);
std::string WhatWasMended(const std::string& path);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_SWMR_H_
