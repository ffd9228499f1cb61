// The sides of a file that its jobs use: estimates, prunes, verifications. A job goes on step by
// step. Each is one narrow side of FileImpl, and keeps the file while the job lives.
#ifndef H5MIRROR_ONION_STORE_JOBS_JOB_SOURCES_H_
#define H5MIRROR_ONION_STORE_JOBS_JOB_SOURCES_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "onion_store/file.h"
#include "onion_store/index/dropped_versions.h"
#include "onion_store/index/version_index.h"
#include "onion_store/pages/generation.h"
#include "onion_store/shared/history_files.h"
#include "onion_store/shared/work_lock.h"

namespace h5mirror::store {

// All are thread-safe, and none waits for a sync. All but files() and work_lock() take the file's
// state lock.

class EstimateSource {
 public:
  virtual ~EstimateSource() = default;

  virtual const HistoryFiles& files() const = 0;
  // OK, or why the file can do nothing more: it must be opened again.
  virtual absl::Status dead() = 0;
};

class PruneSource {
 public:
  virtual ~PruneSource() = default;

  virtual const HistoryFiles& files() const = 0;
  // Each step holds it, also while it calls the members below; but none that calls the archive.
  virtual WorkLock& work_lock() = 0;
  virtual absl::Status dead() = 0;  // as above
  // The file's row. SetRow() takes the row that the index has after a change.
  virtual FileRow row() = 0;
  virtual void SetRow(const FileRow& row) = 0;
  virtual DroppedVersions& dropped_versions() = 0;
  // Whether bytes in the segments of pages are needed that no row names: by a rollback that is not
  // in the head yet, or by a reader.
  virtual bool HasReverts() = 0;
  // While the result lives, no segment goes from the disk into the archive. Called without the work
  // lock.
  virtual std::shared_ptr<const int> PinDisk() = 0;
  // A sealed segment is gone: the bytes of those that are left are counted anew.
  virtual void SegmentRemoved() = 0;
  // The heads of `generations` will be removed. A reader that opens one of them later asks for its
  // version first.
  virtual void ForgetGenerations(absl::Span<const int64_t> generations) = 0;
  // After a failed sync the content of the disk is unknown: the file must be opened again.
  virtual void Die(const absl::Status& status) = 0;
  // Another prune may start. Called without the work lock.
  virtual void PruneEnded() = 0;
};

class ArchiveSource {
 public:
  virtual ~ArchiveSource() = default;

  virtual const HistoryFiles& files() const = 0;
  // Steps that change the index or remove segments hold it; those that call the archive do not.
  virtual WorkLock& work_lock() = 0;
  virtual absl::Status dead() = 0;  // as above
  virtual FileRow row() = 0;        // as above
  virtual void SetRow(const FileRow& row) = 0;
  // Whether bytes of segments must stay on the disk: of a rollback that is not in the head yet, or
  // of a call that reads them with the work lock held.
  virtual bool IsKeptOnDisk() = 0;
  virtual void SegmentRemoved() = 0;                 // as above
  virtual void Die(const absl::Status& status) = 0;  // as above
  // As those of File; called without the work lock.
  virtual absl::StatusOr<FileInfo> Info() = 0;
  virtual absl::StatusOr<std::unique_ptr<VersionReader>> OpenVersion(VersionNumber version) = 0;
  virtual absl::StatusOr<std::unique_ptr<ChangeReader>> OpenChanges(VersionNumber from,
                                                                    VersionNumber to) = 0;
  // Another archive job may start. Called without the work lock.
  virtual void ArchiveEnded() = 0;
};

class VerifySource {
 public:
  virtual ~VerifySource() = default;

  virtual const HistoryFiles& files() const = 0;
  // Each step holds it, also while it calls the members below; but none that calls the archive.
  virtual WorkLock& work_lock() = 0;
  virtual absl::Status dead() = 0;  // as above
  virtual FileRow row() = 0;        // as above
  // Number 0: there is no version.
  virtual VersionNumber NewestVersion() = 0;
  virtual std::shared_ptr<const int> PinDisk() = 0;  // as above
  // All bytes of saved pages on the disk, by the index and the sizes of the segments.
  virtual uint64_t SavedPagesBytes() = 0;
  // True: an apply ended early, so the head has a part of the bytes that the stage still holds.
  virtual bool HasPartOfApply() = 0;
  // The file that holds an older or the newest generation's head, relative to the root.
  virtual std::string HeadName(int64_t generation) = 0;
  // The head of generation `number`, and its sums; an older one is opened to read.
  virtual absl::StatusOr<std::shared_ptr<Generation>> HeadOf(int64_t number) = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_JOBS_JOB_SOURCES_H_
