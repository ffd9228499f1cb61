// Blocks of a file's cuts in memory that the readers of this host map:
// docs/design/052-blocks-in-shared-memory.md.
#ifndef H5MIRROR_SWMR_AGENT_BLOCK_WINDOWS_H_
#define H5MIRROR_SWMR_AGENT_BLOCK_WINDOWS_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "base/extent.h"
#include "base/owned_fd.h"
#include "rpc/shared_blocks_format.h"
#include "swmr_agent/block_pool.h"

namespace h5mirror::agent {

// The memory of one user's readers: that user alone gets it, and it holds only what that user has
// asked for. Its size never changes, and nobody but this process can write to it. Slots take memory
// when they are first filled, or 32 at once where most of the file is expected; so long it is the
// pool's, until the window is destroyed.
//
// Of BlockWindows, and guarded by its mutex but for the first two functions.
class BlockWindow {
 public:
  // Errors: kResourceExhausted the pool has no room for the table; the kernel's.
  static absl::StatusOr<std::shared_ptr<BlockWindow>> Make(std::shared_ptr<BlockPool> pool,
                                                           uint64_t slot_count);
  ~BlockWindow();
  BlockWindow(const BlockWindow&) = delete;

  // The table and the bytes, as readers get them.
  std::vector<int> descriptors() const { return {table_fd_.get(), bytes_fd_.get()}; }
  // True once after its pool had no room for a slot or a table, of this window or another one.
  bool TakeLackOfMemory() const { return pool_->TakeLackOfMemory(); }

 private:
  friend class BlockWindows;
  using Entry = rpc::SharedBlockEntry;

  BlockWindow(std::shared_ptr<BlockPool> pool, uint64_t set_count);
  absl::Status Map();
  // The slot with the block as in the cut; -1: none.
  int64_t Find(uint64_t cut, uint64_t block) const;
  uint64_t OffsetOf(uint64_t slot) const { return rpc::SharedSlotOffset(slot, set_count_); }
  std::string_view BytesOf(uint64_t slot, uint64_t length) const;
  // False: there is no memory for it.
  bool Put(uint64_t cut, uint64_t last_cut, uint64_t block, std::string_view bytes);
  // A slot of the block's set to be filled anew; -1: there is no memory for one.
  int64_t Choose(uint64_t cut, uint64_t block);
  bool Allocate(uint64_t slot);
  // The same with those of the 31 blocks beside `block`, in one large page of the kernel's. False:
  // they are not expected, few readers would copy from it, or there is none.
  bool AllocateLarge(uint64_t slot, uint64_t block);
  void NoteMemory(uint64_t slot);
  // The blocks that are there, and one for each reader but the first: each is about to want some.
  uint64_t Interest() const;
  // How many more slots are filled until a file of so many blocks is there.
  uint64_t MissingOf(uint64_t blocks) const;
  // The blocks that `changed` touches are no more those of the cuts after `cut`.
  void Close(uint64_t cut, absl::Span<const Extent> changed);

  const std::shared_ptr<BlockPool> pool_;
  const uint64_t set_count_;
  uint64_t reserved_bytes_ = 0;
  OwnedFd table_fd_, bytes_fd_;
  char* table_ = nullptr;
  char* bytes_ = nullptr;
  Entry* entries_ = nullptr;
  std::vector<uint64_t> filled_;   // slots that hold a block
  std::vector<bool> has_memory_;   // by slot
  uint64_t with_memory_ = 0;       // slots
  uint64_t expected_blocks_ = 0;   // of the file, if most of it is likely to be wanted
  int64_t readers_ = 0;            // about, at the last Put()
  int large_failures_ = 0;         // in a row: the kernel had no large page, or took long
  std::vector<uint8_t> next_way_;  // by set: the next one to be taken
  bool gets_more_ = false;         // between BeginMore() and EndMore()
};
using WindowPtr = std::shared_ptr<BlockWindow>;

// All windows of a file, for the cuts that follow each other from one whole image on. Cuts are
// counted from 1. A window lives as long as somebody but this object has it. Thread-safe.
class BlockWindows {
 public:
  explicit BlockWindows(std::shared_ptr<BlockPool> pool) : pool_(std::move(pool)) {}

  // The window of a user, for a file of `size_bytes` now. Errors: as BlockWindow::Make().
  absl::StatusOr<WindowPtr> Open(uid_t user, uint64_t size_bytes);
  // The number of the cut that follows `cut`, of which `changed` differs (rising and apart).
  uint64_t Next(uint64_t cut, absl::Span<const Extent> changed);

  bool Has(const WindowPtr& window, uint64_t cut, uint64_t block);
  // False: there is no memory for it.
  bool Put(const WindowPtr& window, uint64_t cut, uint64_t block, std::string_view bytes);
  // It has one reader, of the newest cut, no other user has a window, and there is no room for all
  // of the cut. Where there could be, this notes the lack.
  bool IsAlone(const WindowPtr& window, uint64_t cut, uint64_t size_bytes);
  // How many blocks to fetch at once where one of `cut`, of `size_bytes`, is wanted: the more of
  // the file the window has already, the more. 1..16; 1 of a cut that has a later one.
  uint64_t Around(const WindowPtr& window, uint64_t cut, uint64_t size_bytes);
  // How many blocks to fetch before anybody asks for them; 0: none, or somebody is at it. Above 0
  // the caller calls EndMore() when it is done.
  uint64_t BeginMore(const WindowPtr& window, uint64_t cut, uint64_t size_bytes);
  void EndMore(const WindowPtr& window);
  // In any window. `bytes` may be null; else it gets the block, of its size on entry.
  bool Find(uint64_t cut, uint64_t block, std::string* bytes);

 private:
  // The cut is the newest one, and there is room for all of it.
  bool HasRoomFor(const BlockWindow& window, uint64_t cut, uint64_t size_bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<BlockPool> pool_;
  absl::Mutex mutex_;
  uint64_t newest_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<uid_t, std::weak_ptr<BlockWindow>> windows_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_BLOCK_WINDOWS_H_
