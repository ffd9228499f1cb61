// The bytes of a version, or of a pinned cut of an open file, for any door.
#ifndef H5MIRROR_SERVER_CALLS_FILE_BYTES_H_
#define H5MIRROR_SERVER_CALLS_FILE_BYTES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "onion_store/types.h"

namespace h5mirror::server {

struct FileBytesInfo {
  store::FileId file_id{};
  store::VersionNumber version = 0;  // 0: a cut that is no version
  store::CutNumber cut = 0;
  uint64_t size_bytes = 0;
  absl::Time time = {};  // when the version or cut was made
};

// Thread-compatible.
class FileBytes {
 public:
  virtual ~FileBytes() = default;
  virtual FileBytesInfo bytes_info() const = 0;
  // Fills `out` with the bytes [offset, offset + out.size()). Errors: as
  // store::VersionReader::Read() and store::Snapshot::Read().
  virtual absl::Status ReadBytes(uint64_t offset, absl::Span<char> out) = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_FILE_BYTES_H_
