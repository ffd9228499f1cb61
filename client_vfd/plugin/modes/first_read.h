// A check before the first read of an existing file that is opened for writing and not truncated:
// is an SWMR writer at work on it, or was one killed? HDF5's probes, also those of "w", read
// nothing, so they cost nothing.
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
  // change that this open makes. Fails if that writer may be at work, with the reason on the host's
  // error stack. The next read then checks again.
  herr_t Check(const HostLibrary& host, UnderFile& under, FileBytes& bytes);

 private:
  std::optional<File> file_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_FIRST_READ_H_
