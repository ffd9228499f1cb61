// Decides whether a sync of a file must wait for the MDS. It must if the size or another attribute
// has changed; otherwise a successor would have to find out the size. A file that is only
// overwritten just needs its data on the OSDs. Why: docs/design/048-ceph.md, "What a sync means".
#ifndef H5MIRROR_CEPH_SYNC_NEED_H_
#define H5MIRROR_CEPH_SYNC_NEED_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace h5mirror::ceph {

// Of one inode, shared by all that have it open here. Thread-safe.
class SyncNeed {
 public:
  // To be told after the call, also if it failed: a sync beside it need not cover it.
  void NoteWrite(uint64_t end_bytes);
  void NoteTruncate(uint64_t size_bytes);
  void NoteChange();  // of another attribute

  struct Sync {
    bool is_whole = false;        // it must cover attributes too, and EndWhole() is told its end
    uint64_t truncate_count = 0;  // at its begin
  };
  // To be told before a sync. `wants_times`: it must be whole in any case.
  Sync BeginSync(bool wants_times);
  // `size_bytes`: the size that `sync` has covered, which was asked for before it.
  void EndWhole(const Sync& sync, bool has_synced, uint64_t size_bytes);

 private:
  absl::Mutex mutex_;
  // Nothing is known of a file that has just been opened.
  bool has_changed_ ABSL_GUARDED_BY(mutex_) = true;
  // The MDS has journalled that the file reaches so far.
  uint64_t known_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  // A size read before a truncate is void, even if a later whole sync has covered the truncate.
  uint64_t truncate_count_ ABSL_GUARDED_BY(mutex_) = 0;
  // Whole syncs in progress. Until they end, the changes that they cover are not safe.
  int whole_syncs_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Those of the files that are open. Thread-safe.
class SyncNeeds {
 public:
  std::shared_ptr<SyncNeed> Of(uint64_t inode);

 private:
  absl::Mutex mutex_;
  std::map<uint64_t, std::weak_ptr<SyncNeed>> needs_ ABSL_GUARDED_BY(mutex_);
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = 64;
};

}  // namespace h5mirror::ceph

#endif  // H5MIRROR_CEPH_SYNC_NEED_H_
