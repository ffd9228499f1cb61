// One cut of a file as the readers of a host share it: the known bytes, and the way to the others.
#ifndef H5MIRROR_SWMR_AGENT_CUT_IMAGE_H_
#define H5MIRROR_SWMR_AGENT_CUT_IMAGE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/extent.h"
#include "rpc/version_source.h"
#include "swmr_agent/block_pool.h"
#include "swmr_agent/block_windows.h"
#include "swmr_agent/cut_memory.h"

namespace h5mirror::agent {

// Bytes that many readers want are fetched once. Thread-safe.
class CutImage {
 public:
  // `fetch` reads the cut from its server.
  CutImage(std::shared_ptr<BlockPool> pool, uint64_t size_bytes, rpc::RangeReader fetch);

  // The next cut, of which nothing but `changed` (rising and apart) differs within both sizes.
  // The cost follows the changes, and the list of known blocks.
  std::shared_ptr<CutImage> Next(uint64_t size_bytes, rpc::RangeReader fetch,
                                 absl::Span<const Extent> changed);
  // Metadata, whole pages of 4 KiB but for the end of the cut; before anybody reads this cut.
  void Learn(uint64_t offset, std::string_view pages);
  // From now on missing bytes are read in this way.
  void SetFetch(rpc::RangeReader fetch);

  uint64_t size_bytes() const { return size_bytes_; }
  // Blocks that it keeps a place for: about as many as the pool has room for, at most.
  size_t block_count();

  // Calls `sink` with the bytes [offset, offset + length) that lie within the cut, in order.
  // Errors: the reader's and the sink's; kUnavailable somebody else's fetch took too long.
  absl::Status Read(uint64_t offset, uint64_t length, rpc::RangeSink sink);
  // Its metadata as far as it is known, for readers to map: the one that was made for others,
  // unless much more is known by now. Errors: kNotFound nothing is known; kResourceExhausted
  // readers have mapped too much.
  absl::StatusOr<std::shared_ptr<const CutMemory>> Memory();
  // The memory in which readers of `user` find blocks of this cut. Errors: as BlockWindow::Make().
  absl::StatusOr<WindowPtr> OpenWindow(uid_t user) { return windows_->Open(user, size_bytes_); }
  // This cut in the entries of windows.
  uint64_t window_cut() const { return window_cut_; }
  // Puts the blocks [first, first + count), as far as the cut has them, into the window.
  // Errors: the reader's; kResourceExhausted there is no memory for them; kUnavailable as Read().
  absl::Status Share(const WindowPtr& window, uint64_t first, uint64_t count);
  // Nobody else reads the file, and there is no room for it: the blocks of its one reader would
  // push out each other here. Where it would fit without windows that have no reader, these may
  // end.
  bool IsAlone(const WindowPtr& window) {
    return windows_->IsAlone(window, window_cut_, size_bytes_);
  }
  // The same with blocks that nobody has asked for yet, after a Share() that had to fetch: of a
  // file of which readers want much, as many as the window has already (16 for each reader at
  // least), from `after` on and then from the file's beginning. By parts; `goes_on` is asked before
  // each. One thread for each window; another one returns at once.
  void ShareMore(const WindowPtr& window, uint64_t after, absl::FunctionRef<bool()> goes_on);
  // Blocks of metadata that `read` does not touch, as MetadataAhead has it.
  absl::Status ReadAhead(Extent read, rpc::MetadataAhead& ahead);

 private:
  using Kind = BlockPool::Kind;

  CutImage(std::shared_ptr<BlockPool> pool, uint64_t size_bytes, rpc::RangeReader fetch,
           std::shared_ptr<BlockWindows> windows, uint64_t window_cut);
  std::vector<Extent> ChangedTo(uint64_t size_bytes, absl::Span<const Extent> changed) const;
  BlockPtr BlockAt(uint64_t index);
  // Replaces the blocks that [begin, end) touches by the rest of them.
  void Forget(uint64_t begin, uint64_t end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets blocks of which nothing is known any more.
  void Sweep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  rpc::RangeReader fetch();
  uint64_t BlockBytes(uint64_t index) const;
  // Claimed, and next to each other; none: the first is known or somebody fetches it.
  std::vector<BlockPtr> ClaimRun(uint64_t index, uint64_t end_index);
  // Fetches the claimed blocks from `index` on. Gives each to `keep`, in order and as soon as it is
  // there, and releases it.
  using Keep =
      absl::FunctionRef<void(uint64_t index, const BlockPtr& block, std::string_view bytes)>;
  absl::Status FetchRun(uint64_t index, const std::vector<BlockPtr>& run, Keep keep);
  // The same into a window. `*shared`: as Share().
  absl::Status FetchInto(const WindowPtr& window, uint64_t index, const std::vector<BlockPtr>& run,
                         absl::Status* shared);
  // The same, with up to `around` blocks in all: those of the same aligned group, `*index` the
  // first.
  std::vector<BlockPtr> ClaimAround(uint64_t* index, uint64_t end_index, uint64_t around);
  // From where it is known here already. False: it is not.
  bool ShareKnown(const WindowPtr& window, uint64_t index, const BlockPtr& block,
                  absl::Status* shared);
  absl::Status FetchAhead(uint64_t index, uint64_t length);
  void KeepAhead(uint64_t offset, std::string_view blocks);
  // The metadata of which something is known; `*has_all`: of all of it.
  std::vector<CutMemory::Block> KnownMetadata(bool* has_all);

  const std::shared_ptr<BlockPool> pool_;
  const uint64_t size_bytes_;
  const std::shared_ptr<BlockWindows> windows_;
  const uint64_t window_cut_;
  absl::Mutex ahead_mutex_;   // held over a fetch of metadata; before mutex_
  absl::Mutex memory_mutex_;  // held over the making of one; before mutex_
  absl::Mutex mutex_;
  std::shared_ptr<const CutMemory> memory_ ABSL_GUARDED_BY(mutex_);  // or that of the cut before
  bool memory_is_own_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time memory_use_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  rpc::RangeReader fetch_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, BlockPtr> blocks_ ABSL_GUARDED_BY(mutex_);
  size_t sweep_at_ ABSL_GUARDED_BY(mutex_) = 0;          // blocks
  std::set<uint64_t> metadata_ ABSL_GUARDED_BY(mutex_);  // blocks in which there is some
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_CUT_IMAGE_H_
