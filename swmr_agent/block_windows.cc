#include "swmr_agent/block_windows.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::agent {
namespace {

static_assert(rpc::kSharedBlockBytes == kBlockBytes);
constexpr uint64_t kWays = rpc::kSharedWays;
// Room for a file to grow, and for blocks of older cuts.
constexpr uint64_t kSlotsMin = 1024;
constexpr uint64_t kSlotsMax = 1 << 20;  // 64 GiB
constexpr uint64_t kAroundMax = 16;
// From this part of a file on that readers have wanted, and more than a block, more of it comes
// before it is wanted. Each reader but the first counts as a block.
constexpr uint64_t kMoreFrom = 64;
// So many readers at most count for what comes before it is wanted.
constexpr int64_t kReadersMax = 16;
constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack
constexpr int kCollapse = 25;       // MADV_COLLAPSE, the same
// Slots of one large page (2 MiB).
constexpr uint64_t kLargeSlots = 32;
constexpr uint64_t kLargeBytes = kLargeSlots * kBlockBytes;
// A kernel that takes so long to find one has none left. It may take a part of that where it must
// get the memory from the host of a virtual machine: so many readers are worth it in any case.
constexpr int kLargeFailuresMax = 4;  // in a row
constexpr absl::Duration kLargePageTime = absl::Milliseconds(20);
constexpr int64_t kLargeFromReaders = 4;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

uint64_t TableBytes(uint64_t set_count) {
  return sizeof(rpc::SharedBlocksHeader) + set_count * kWays * sizeof(rpc::SharedBlockEntry);
}

// Room for a mapping that begins where a large page may.
void* AlignedRoom(uint64_t bytes) {
  bytes = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* const room = mmap(nullptr, bytes + kLargeBytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return room;
  const auto begin = reinterpret_cast<uintptr_t>(room);
  const uintptr_t aligned = (begin + kLargeBytes - 1) / kLargeBytes * kLargeBytes;
  if (aligned > begin) munmap(room, aligned - begin);
  const uint64_t behind = begin + kLargeBytes - aligned;
  if (behind > 0) munmap(reinterpret_cast<char*>(aligned) + bytes, behind);
  return reinterpret_cast<void*>(aligned);
}

// Memory without a name, mapped here for writing. After that nobody else can write to it, and
// nobody at all can change its size.
absl::StatusOr<char*> MapSealed(uint64_t bytes, OwnedFd* fd) {
  *fd = OwnedFd(memfd_create("h5mirror-blocks", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd->valid() || ftruncate(fd->get(), static_cast<off_t>(bytes)) != 0) {
    return ErrnoToStatus(errno, "make memory for readers");
  }
  void* const room = AlignedRoom(bytes);
  if (room == MAP_FAILED) return ErrnoToStatus(errno, "map memory for readers");
  void* const data =
      mmap(room, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd->get(), 0);
  if (data == MAP_FAILED) {
    const absl::Status status = ErrnoToStatus(errno, "map memory for readers");
    munmap(room, bytes);
    return status;
  }
  if (fcntl(fd->get(), F_ADD_SEALS, kSeals) != 0) {
    const absl::Status status = ErrnoToStatus(errno, "seal memory for readers");
    munmap(data, bytes);
    return status;
  }
  return static_cast<char*>(data);
}

uint64_t BlocksOf(uint64_t size_bytes) { return (size_bytes + kBlockBytes - 1) / kBlockBytes; }

// About: each has it.
int64_t ReadersOf(const WindowPtr& window) { return window.use_count(); }

bool Touches(absl::Span<const Extent> changed, uint64_t begin, uint64_t end) {
  const auto after =
      std::upper_bound(changed.begin(), changed.end(), begin,
                       [](uint64_t at, const Extent& extent) { return at < extent.end(); });
  return after != changed.end() && after->offset < end;
}

}  // namespace

BlockWindow::BlockWindow(std::shared_ptr<BlockPool> pool, uint64_t set_count)
    : pool_(std::move(pool)),
      set_count_(set_count),
      has_memory_(set_count * kWays),
      next_way_(set_count) {}

absl::StatusOr<std::shared_ptr<BlockWindow>> BlockWindow::Make(std::shared_ptr<BlockPool> pool,
                                                               uint64_t slot_count) {
  uint64_t set_count = std::max<uint64_t>(1, slot_count / kWays);
  // So that a large page holds slots of blocks that follow each other.
  if (set_count > kLargeSlots) set_count -= set_count % kLargeSlots;
  std::shared_ptr<BlockWindow> window(new BlockWindow(std::move(pool), set_count));
  H5M_RETURN_IF_ERROR(window->Map());
  return window;
}

BlockWindow::~BlockWindow() {
  if (table_ != nullptr) munmap(table_, TableBytes(set_count_));
  if (bytes_ != nullptr) munmap(bytes_, set_count_ * kWays * kBlockBytes);
  pool_->Unreserve(reserved_bytes_);
}

// The kernel gives the memory to fallocate(): where it has none left that is an error, and no
// signal at a later access, here or at a reader.
absl::Status BlockWindow::Map() {
  const uint64_t table_bytes = TableBytes(set_count_);
  if (!pool_->TryReserve(table_bytes)) {
    return absl::ResourceExhaustedError("readers have half of the cache mapped: no room for more");
  }
  reserved_bytes_ = table_bytes;
  H5M_ASSIGN_OR_RETURN(table_, MapSealed(table_bytes, &table_fd_));
  if (fallocate(table_fd_.get(), 0, 0, static_cast<off_t>(table_bytes)) != 0) {
    return ErrnoToStatus(errno, "get memory for readers");
  }
  H5M_ASSIGN_OR_RETURN(bytes_, MapSealed(set_count_ * kWays * kBlockBytes, &bytes_fd_));
  rpc::SharedBlocksHeader header{};
  std::memcpy(header.magic, rpc::kSharedMagic, sizeof(header.magic));
  header.set_count = set_count_;
  std::memcpy(table_, &header, sizeof(header));
  // Zeros are entries of empty slots.
  entries_ = reinterpret_cast<Entry*>(table_ + sizeof(header));
  return absl::OkStatus();
}

int64_t BlockWindow::Find(uint64_t cut, uint64_t block) const {
  const uint64_t set = block % set_count_ * kWays;
  for (uint64_t slot = set; slot < set + kWays; ++slot) {
    const Entry& entry = entries_[slot];
    if (has_memory_[slot] && entry.block == block && entry.first_cut <= cut &&
        cut <= entry.last_cut) {
      return static_cast<int64_t>(slot);
    }
  }
  return -1;
}

std::string_view BlockWindow::BytesOf(uint64_t slot, uint64_t length) const {
  return {bytes_ + OffsetOf(slot), length};
}

bool BlockWindow::Put(uint64_t cut, uint64_t last_cut, uint64_t block, std::string_view bytes) {
  if (Find(cut, block) >= 0) return true;
  const int64_t slot = Choose(cut, block);
  if (slot < 0) return false;
  Entry& entry = entries_[slot];
  const uint64_t sequence = entry.sequence.load(std::memory_order_relaxed);
  entry.sequence.store(sequence + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(bytes_ + OffsetOf(slot), bytes.data(), bytes.size());
  if (sequence == 0) filled_.push_back(slot);
  entry.block.store(block, std::memory_order_relaxed);
  entry.first_cut.store(cut, std::memory_order_relaxed);
  entry.last_cut.store(last_cut, std::memory_order_relaxed);
  entry.sequence.store(sequence + 2, std::memory_order_release);
  return true;
}

int64_t BlockWindow::Choose(uint64_t cut, uint64_t block) {
  const uint64_t number = block % set_count_, set = number * kWays;
  // Beside the blocks before and behind it in the file.
  const uint64_t own = set + block / set_count_ % kWays;
  if (entries_[own].sequence == 0 &&
      (has_memory_[own] || AllocateLarge(own, block) || Allocate(own))) {
    return static_cast<int64_t>(own);
  }
  for (uint64_t slot = set; slot < set + kWays; ++slot) {
    if (has_memory_[slot] && entries_[slot].sequence == 0) return static_cast<int64_t>(slot);
  }
  // First: readers of an older cut may still want what it has.
  for (uint64_t slot = set; slot < set + kWays; ++slot) {
    if (has_memory_[slot]) continue;
    if (Allocate(slot)) return static_cast<int64_t>(slot);
    break;
  }
  for (uint64_t slot = set; slot < set + kWays; ++slot) {
    if (has_memory_[slot] && entries_[slot].last_cut < cut) return static_cast<int64_t>(slot);
  }
  for (uint64_t tried = 0; tried < kWays; ++tried) {
    const uint64_t slot = set + next_way_[number];
    next_way_[number] = static_cast<uint8_t>((next_way_[number] + 1) % kWays);
    if (has_memory_[slot]) return static_cast<int64_t>(slot);
  }
  return -1;
}

bool BlockWindow::Allocate(uint64_t slot) {
  if (!pool_->TryReserve(kBlockBytes)) return false;
  const auto offset = static_cast<off_t>(OffsetOf(slot));
  if (fallocate(bytes_fd_.get(), 0, offset, static_cast<off_t>(kBlockBytes)) != 0) {
    pool_->Unreserve(kBlockBytes);
    return false;
  }
  // At once, with no fault for each page. That it fails, as before Linux 5.14, is no error.
  static_cast<void>(madvise(bytes_ + offset, kBlockBytes, kPopulateWrite));
  NoteMemory(slot);
  return true;
}

void BlockWindow::NoteMemory(uint64_t slot) {
  reserved_bytes_ += kBlockBytes;
  has_memory_[slot] = true;
  ++with_memory_;
}

// One page makes the kernel put a large one in its place, with zeros in the rest. That costs a
// fifth of the single pages, and readers copy from it in a third of the time. It needs no right and
// no setting of the host's (Linux 6.1). The large page is there then: no access finds none.
bool BlockWindow::AllocateLarge(uint64_t slot, uint64_t block) {
  const bool is_expected = block / kLargeSlots * kLargeSlots + kLargeSlots / 2 <= expected_blocks_;
  if (large_failures_ >= kLargeFailuresMax || readers_ < kLargeFromReaders || !is_expected ||
      set_count_ < kLargeSlots) {
    return false;
  }
  std::vector<uint64_t> missing;
  const uint64_t first = slot - slot / kWays % kLargeSlots * kWays;
  for (uint64_t each = first; each < first + kLargeSlots * kWays; each += kWays) {
    if (!has_memory_[each]) missing.push_back(each);
  }
  const uint64_t bytes = missing.size() * kBlockBytes;
  // Without TryReserve(): that it does not fit is no lack of memory yet.
  const bool fits = pool_->count().reserved_bytes + bytes <= pool_->capacity_bytes() / 2;
  if (!fits || !pool_->TryReserve(bytes)) return false;
  const absl::Time begin = absl::Now();
  const auto offset = static_cast<off_t>(OffsetOf(slot));
  const bool is_there =
      fallocate(bytes_fd_.get(), 0, offset, static_cast<off_t>(kPageBytes)) == 0 &&
      madvise(bytes_ + OffsetOf(first), kLargeBytes, kCollapse) == 0;
  // A reader may hold one of the single pages just then, and other work the processor.
  const bool is_well = is_there && absl::Now() - begin < kLargePageTime;
  large_failures_ = is_well ? 0 : large_failures_ + 1;
  if (!is_there) {
    pool_->Unreserve(bytes);
    return false;
  }
  for (const uint64_t each : missing) NoteMemory(each);
  return true;
}

void BlockWindow::Close(uint64_t cut, absl::Span<const Extent> changed) {
  for (const uint64_t slot : filled_) {
    Entry& entry = entries_[slot];
    if (entry.last_cut != rpc::kSharedCurrent) continue;
    const uint64_t begin = entry.block * kBlockBytes;
    if (Touches(changed, begin, begin + kBlockBytes)) entry.last_cut = cut;
  }
}

absl::StatusOr<WindowPtr> BlockWindows::Open(uid_t user, uint64_t size_bytes) {
  absl::MutexLock lock(&mutex_);
  if (WindowPtr window = windows_[user].lock()) return window;
  const uint64_t blocks = BlocksOf(size_bytes);
  const uint64_t most = std::max(kWays, pool_->capacity_bytes() / 2 / kBlockBytes);
  const uint64_t slots = std::min({2 * blocks + kSlotsMin, most, kSlotsMax});
  H5M_ASSIGN_OR_RETURN(WindowPtr window, BlockWindow::Make(pool_, slots));
  windows_[user] = window;
  return window;
}

uint64_t BlockWindows::Next(uint64_t cut, absl::Span<const Extent> changed) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(windows_, [](const auto& entry) { return entry.second.expired(); });
  for (const auto& [user, weak] : windows_) {
    if (const WindowPtr window = weak.lock()) window->Close(cut, changed);
  }
  return ++newest_;
}

bool BlockWindows::Has(const WindowPtr& window, uint64_t cut, uint64_t block) {
  absl::MutexLock lock(&mutex_);
  return window->Find(cut, block) >= 0;
}

bool BlockWindows::Put(const WindowPtr& window, uint64_t cut, uint64_t block,
                       std::string_view bytes) {
  absl::MutexLock lock(&mutex_);
  window->readers_ = ReadersOf(window);
  return window->Put(cut, cut == newest_ ? rpc::kSharedCurrent : cut, block, bytes);
}

uint64_t BlockWindow::MissingOf(uint64_t blocks) const {
  return blocks - std::min<uint64_t>(blocks, filled_.size());
}

// Without the room the blocks would push out each other.
bool BlockWindows::HasRoomFor(const BlockWindow& window, uint64_t cut, uint64_t size_bytes) {
  const uint64_t blocks = BlocksOf(size_bytes);
  if (cut != newest_ || blocks > window.set_count_ * kWays) return false;
  const uint64_t more_bytes = (blocks - std::min(blocks, window.with_memory_)) * kBlockBytes;
  return pool_->count().reserved_bytes + more_bytes <= pool_->capacity_bytes() / 2;
}

bool BlockWindows::IsAlone(const WindowPtr& window, uint64_t cut, uint64_t size_bytes) {
  absl::MutexLock lock(&mutex_);
  if (cut != newest_ || ReadersOf(window) > 1 || HasRoomFor(*window, cut, size_bytes)) return false;
  if (BlocksOf(size_bytes) * kBlockBytes <= pool_->capacity_bytes() / 2) {
    pool_->NoteLackOfMemory();
  }
  return std::none_of(windows_.begin(), windows_.end(), [&](const auto& entry) {
    return !entry.second.expired() && entry.second.lock() != window;
  });
}

uint64_t BlockWindow::Interest() const {
  const auto readers = static_cast<uint64_t>(std::clamp<int64_t>(readers_, 1, kReadersMax));
  return filled_.size() + readers - 1;
}

// A file of which little is read comes to the block. If an eighth of it has been wanted, the rest
// is likely to be wanted too, unless its readers move on to the next cut.
uint64_t BlockWindows::Around(const WindowPtr& window, uint64_t cut, uint64_t size_bytes) {
  absl::MutexLock lock(&mutex_);
  window->readers_ = ReadersOf(window);
  if (!HasRoomFor(*window, cut, size_bytes)) return 1;
  return std::clamp<uint64_t>(8 * kAroundMax * window->Interest() / BlocksOf(size_bytes), 1,
                              kAroundMax);
}

// As many as there are, or a MiB for each reader. So of all that comes about half at most is never
// wanted, or these MiB.
uint64_t BlockWindows::BeginMore(const WindowPtr& window, uint64_t cut, uint64_t size_bytes) {
  absl::MutexLock lock(&mutex_);
  window->readers_ = ReadersOf(window);
  const uint64_t blocks = BlocksOf(size_bytes), filled = window->filled_.size();
  const uint64_t interest = window->Interest();
  const bool is_wanted = filled > 0 && interest > 1 && interest * kMoreFrom >= blocks;
  if (window->gets_more_ || !is_wanted || !HasRoomFor(*window, cut, size_bytes)) return 0;
  const uint64_t readers = interest - filled + 1;
  const uint64_t more = std::min(window->MissingOf(blocks), std::max(filled, readers * kAroundMax));
  window->gets_more_ = more > 0;
  window->expected_blocks_ = blocks;
  return more;
}

void BlockWindows::EndMore(const WindowPtr& window) {
  absl::MutexLock lock(&mutex_);
  window->gets_more_ = false;
}

bool BlockWindows::Find(uint64_t cut, uint64_t block, std::string* bytes) {
  absl::MutexLock lock(&mutex_);
  for (const auto& [user, weak] : windows_) {
    const WindowPtr window = weak.lock();
    const int64_t slot = window == nullptr ? -1 : window->Find(cut, block);
    if (slot < 0) continue;
    if (bytes != nullptr) bytes->assign(window->BytesOf(slot, bytes->size()));
    return true;
  }
  return false;
}

}  // namespace h5mirror::agent
