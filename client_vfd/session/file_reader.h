// The session's own view of the local file, read-only.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_FILE_READER_H_
#define H5MIRROR_CLIENT_VFD_SESSION_FILE_READER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/extent.h"
#include "base/local_record.h"
#include "client_vfd/session/descriptor_mark.h"

namespace h5mirror::vfd {

// Thread-safe.
class FileReader {
 public:
  // Opens the file behind `fd` anew through /proc: a dup() would share the program's flock, and
  // outlive it. Works for a file that was renamed meanwhile.
  // Where `mark` is lost by its end, its descriptor is left open: the number may be that of the
  // program's own open of this file. `mark` must outlive the reader.
  static absl::StatusOr<std::unique_ptr<FileReader>> Open(int fd, const DescriptorMark& mark);
  virtual ~FileReader() = default;

  // Fills `out` with the bytes of `extent`; bytes beyond the end of file are zeros.
  virtual absl::Status Read(Extent extent, char* out) const = 0;
  virtual absl::StatusOr<FileStat> Stat() const = 0;
  // The parts of the file that are not holes, in order; the whole file, if the file system cannot
  // tell.
  virtual std::vector<Extent> DataExtents() const = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_FILE_READER_H_
