// The questions about an existing file that is opened for writing, and not truncated, before
// HDF5 reads it first: whether an SWMR writer is at work on it, or was killed. HDF5's probes, for
// "w" too, read nothing, and so cost nothing.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_FIRST_READ_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_FIRST_READ_H_

#include <optional>
#include <string>
#include <utility>

#include "client_vfd/plugin/host/hdf5_headers.h"
#include "client_vfd/plugin/host/host_library.h"
#include "client_vfd/plugin/modes/under_file.h"

namespace h5mirror::vfd {

class FirstRead {
 public:
  static constexpr int kAskedBefore = -1;  // no other program had it open, before the open
  struct File {
    std::string name;  // as the program gave it
    std::string log;
    int fd = kAskedBefore;  // for WhoHasOpen()
  };

  void Expect(File file) { file_ = std::move(file); }
  bool IsExpected() const { return file_.has_value(); }
  // Where the file's SWMR writer was killed, mends the superblock by a write to `bytes`, as a
  // change that this open makes. Fails, with the reason on the host's error stack, where that
  // writer may be at work; the next read is then the first one again.
  herr_t Check(const HostLibrary& host, UnderFile& under, FileBytes& bytes);

 private:
  std::optional<File> file_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_FIRST_READ_H_
