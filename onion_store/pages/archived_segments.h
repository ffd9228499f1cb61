// Segments that are only in an archive, not on the disk: docs/design/050-archive.md, "Reading".
#ifndef H5MIRROR_ONION_STORE_PAGES_ARCHIVED_SEGMENTS_H_
#define H5MIRROR_ONION_STORE_PAGES_ARCHIVED_SEGMENTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "onion_store/index/version_index.h"
#include "onion_store/shared/object_cache.h"

namespace h5mirror::store {

// Thread-safe. Holds no lock over a call of the archive.
class ArchivedSegments {
 public:
  // `cache` must outlive this.
  explicit ArchivedSegments(ObjectCache& cache) : cache_(cache) {}

  // The index to ask from now on. Before the first durable cut there is none, and no object.
  void UseIndex(const std::shared_ptr<VersionIndex>& index) ABSL_LOCKS_EXCLUDED(mutex_);

  // The bytes of segment `number`, to read; null: it has no object. Errors of reads name the
  // object. `name`: of the segment, for messages. Errors: kDataLoss  the row is damaged. Those of
  // the index.
  absl::StatusOr<std::shared_ptr<EnvFile>> Open(uint64_t number, const std::string& name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Call it after damage: drops the segment's blocks from the cache, so that they are read again.
  // Returns the place of its object, for messages; empty: nothing of it came from the archive.
  std::string Forget(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<std::optional<ArchivedSegment>> Find(uint64_t number) ABSL_LOCKS_EXCLUDED(mutex_);

  ObjectCache& cache_;
  absl::Mutex mutex_;
  std::shared_ptr<VersionIndex> index_ ABSL_GUARDED_BY(mutex_);
};

// "archived as files/... in s3://b", for messages; `store` may be null.
std::string PlaceOfObject(const ObjectStore* store, const std::string& object);

// The error of an archive as a caller of the history gets it: an object that does not exist is
// lost, and does not mean a file without a history.
absl::Status OfArchive(const absl::Status& status, const std::string& segment,
                       const ObjectStore* store, const std::string& object);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_ARCHIVED_SEGMENTS_H_
