// The part of a file that a reader of a version uses.
#ifndef H5MIRROR_ONION_STORE_FILE_VERSIONS_VERSION_SOURCE_H_
#define H5MIRROR_ONION_STORE_FILE_VERSIONS_VERSION_SOURCE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "onion_store/index/dropped_versions.h"

namespace h5mirror::store {

// Thread-safe. None of these waits for a sync; dead() and HeadName() take the file's state lock.
class VersionSource {
 public:
  virtual ~VersionSource() = default;

  virtual const std::string& name() const = 0;
  virtual uint32_t page_size_bytes() const = 0;
  // OK, or why the file can do nothing more: it must be opened again.
  virtual absl::Status dead() = 0;
  // The file that holds an older or the newest generation's head, relative to the root.
  virtual std::string HeadName(int64_t generation) = 0;
  virtual const DroppedVersions& dropped_versions() const = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_VERSIONS_VERSION_SOURCE_H_
