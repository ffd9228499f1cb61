// Rebuilds one file from its copy in an archive: docs/design/050-archive.md, "Copies of files".
//
//   index, set aside --> back to the copy's version --> heads and sums --> segments --> owner
//         --> sync --> the index gets its name
//
// So if a history has no `index`, its file was not rebuilt to the end.
#ifndef H5MIRROR_ONION_STORE_JOBS_FILE_RESTORE_H_
#define H5MIRROR_ONION_STORE_JOBS_FILE_RESTORE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/env.h"
#include "base/extent_set.h"
#include "onion_store/disk/sqlite_vfs.h"
#include "onion_store/index/version_index.h"
#include "onion_store/pages/archived_copy.h"
#include "onion_store/restore_root.h"

namespace h5mirror::store {

// Not thread-safe. All must outlive this.
class FileRestore {
 public:
  // `aside`: a directory for the index while it is put in order.
  FileRestore(EnvTree& tree, const SqliteVfs& vfs, std::string aside, ObjectStore& archive,
              const RestoreOptions& options)
      : tree_(tree), vfs_(vfs), aside_(std::move(aside)), archive_(archive), options_(options) {}

  // Rebuilds the file of `copy` under the name `name`. Errors as RootRestore::Restore().
  absl::Status Run(const FileCopy& copy, const std::string& name);
  // The bytes of pages that the copy lacks because they were damaged: reads of them fail as before.
  uint64_t lost_bytes() const { return lost_bytes_; }

 private:
  absl::Status MakeDirectories(const std::string& name);
  absl::Status GetIndex(const FileCopy& copy, std::vector<ArchivedSegment>* segments);
  // Puts the index in order: the copy's version becomes the newest, and rows name only existing
  // pages.
  absl::Status PrepareIndex(const FileCopy& copy, std::vector<ArchivedSegment>* segments);
  absl::Status GetHead(const FileCopy& copy, const CopyHead& head, const std::string& name,
                       uint32_t mode_bits, const std::string& sums_name);
  // Applies a layer to `file`, up to `size_bytes`; notes the bytes that it wrote, and those that it
  // lacks.
  absl::Status GetLayer(const FileId& file_id, const CopyLayer& layer, uint64_t size_bytes,
                        EnvFile& file, ExtentSet* written, ExtentSet* lost);
  absl::Status GetSegment(const FileCopy& copy, const ArchivedSegment& segment,
                          const std::string& name);
  // Gives the index its name: from now on the file exists.
  absl::Status Publish(const std::string& history);
  absl::Status Came(uint64_t bytes) const;

  EnvTree& tree_;
  const SqliteVfs& vfs_;
  const std::string aside_;
  ObjectStore& archive_;
  const RestoreOptions& options_;
  uint64_t lost_bytes_ = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_FILE_RESTORE_H_
