#include "rpc/shared_blocks.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/agent_question.h"

namespace h5mirror::rpc {
namespace {

constexpr uint64_t kBlock = kSharedBlockBytes;
constexpr int kSealsWanted = F_SEAL_SHRINK | F_SEAL_GROW;
// For blocks that the agent fetches; then the reader goes on without it.
constexpr absl::Duration kFillWait = absl::Seconds(2);
// The longest time between two signs to the agent that this cut is still being read.
constexpr absl::Duration kSignOfLife = absl::Minutes(1);
// Others may have begun to read the file by then.
constexpr absl::Duration kAloneFor = absl::Seconds(10);

absl::Status Refuse(std::string_view why) {
  return absl::InvalidArgumentError(StrCat("the agent's memory of blocks: ", why));
}

absl::StatusOr<uint64_t> SealedBytes(const OwnedFd& memory) {
  const int seals = fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSealsWanted) != kSealsWanted) return Refuse("it is not sealed");
  struct stat info {};
  if (fstat(memory.get(), &info) != 0 || info.st_size <= 0) return Refuse("it is empty");
  return static_cast<uint64_t>(info.st_size);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SharedBlocks>> SharedBlocks::Ask(const std::string& socket_path,
                                                                const CutMapQuestion& question,
                                                                uint64_t size_bytes,
                                                                absl::Time deadline) {
  SharedBlocksAnswer answer{};
  H5M_ASSIGN_OR_RETURN(AgentAnswer got,
                       AskAgent(socket_path, question, deadline,
                                {reinterpret_cast<char*>(&answer), sizeof(answer)}));
  if (got.length_bytes != sizeof(answer) ||
      std::memcmp(answer.magic, kSharedMagic, sizeof(answer.magic)) != 0 ||
      answer.descriptor_count != got.memories.size()) {
    return Refuse("the answer makes no sense");
  }
  if (got.memories.empty()) return absl::NotFoundError("the agent shares no blocks of this cut");
  if (got.memories.size() != 2) return Refuse("the answer makes no sense");
  return Map(std::move(got.memories[0]), std::move(got.memories[1]), answer.cut, size_bytes,
             std::move(got.connection), answer.flags);
}

absl::StatusOr<std::unique_ptr<SharedBlocks>> SharedBlocks::Map(OwnedFd table, OwnedFd bytes,
                                                                uint64_t cut, uint64_t size_bytes,
                                                                OwnedFd connection,
                                                                uint32_t flags) {
  H5M_ASSIGN_OR_RETURN(const uint64_t length, SealedBytes(bytes));
  std::unique_ptr<SharedBlocks> blocks(
      new SharedBlocks(std::move(bytes), cut, size_bytes, std::move(connection), flags));
  H5M_RETURN_IF_ERROR(blocks->MapTable(table));
  if (length / kBlock / kSharedWays < blocks->set_count_) return Refuse("it is too short");
  return blocks;
}

SharedBlocks::SharedBlocks(OwnedFd bytes, uint64_t cut, uint64_t size_bytes, OwnedFd connection,
                           uint32_t flags)
    : bytes_(std::move(bytes)),
      cut_(cut),
      size_bytes_(size_bytes),
      owner_(getpid()),
      connection_(std::move(connection)),
      wait_kind_((flags & kAnswersAlone) != 0 ? SharedWant::kWaitOrAlone : SharedWant::kWait),
      last_sent_(absl::Now()) {}

SharedBlocks::~SharedBlocks() {
  if (table_ != nullptr) munmap(const_cast<char*>(table_), table_bytes_);
}

absl::Status SharedBlocks::MapTable(const OwnedFd& table) {
  H5M_ASSIGN_OR_RETURN(table_bytes_, SealedBytes(table));
  if (table_bytes_ < sizeof(SharedBlocksHeader)) return Refuse("its table is cut off");
  void* const data = mmap(nullptr, table_bytes_, PROT_READ, MAP_SHARED, table.get(), 0);
  if (data == MAP_FAILED) return ErrnoToStatus(errno, "map the agent's memory");
  table_ = static_cast<const char*>(data);
  SharedBlocksHeader header;
  std::memcpy(&header, table_, sizeof(header));
  if (std::memcmp(header.magic, kSharedMagic, sizeof(header.magic)) != 0) {
    return Refuse("its table is of another kind");
  }
  const uint64_t room = (table_bytes_ - sizeof(header)) / sizeof(SharedBlockEntry) / kSharedWays;
  if (header.set_count == 0 || header.set_count > room) return Refuse("its table does not fit");
  set_count_ = header.set_count;
  entries_ = reinterpret_cast<const SharedBlockEntry*>(table_ + sizeof(header));
  return absl::OkStatus();
}

uint64_t SharedBlocks::block_count() const { return (size_bytes_ + kBlock - 1) / kBlock; }

uint64_t SharedBlocks::Read(uint64_t offset, absl::Span<char> out) {
  AskAhead(offset, out.size());
  return ReadBeside(offset, out);
}

uint64_t SharedBlocks::ReadBeside(uint64_t offset, absl::Span<char> out) {
  const uint64_t begin = offset, end = offset + out.size();
  bool has_asked = false;  // for the block at `offset`
  while (offset < end) {
    const uint64_t copied = Copy(offset, out.subspan(offset - begin));
    offset += copied;
    if (copied > 0) {
      has_asked = false;
    } else if (has_asked || !Want(offset / kBlock, (end + kBlock - 1) / kBlock)) {
      break;  // The second time: the memory is too small to keep it for that long.
    } else {
      has_asked = true;
    }
  }
  return offset - begin;
}

uint64_t SharedBlocks::Peek(uint64_t offset, absl::Span<char> out) const {
  uint64_t done = 0;
  while (done < out.size()) {
    const uint64_t copied = Copy(offset + done, out.subspan(done));
    if (copied == 0) break;
    done += copied;
  }
  return done;
}

uint64_t SharedBlocks::Copy(uint64_t offset, absl::Span<char> out) const {
  const uint64_t block = offset / kBlock;
  const uint64_t part = std::min<uint64_t>(out.size(), (block + 1) * kBlock - offset);
  const uint64_t set = block % set_count_ * kSharedWays;
  for (uint64_t slot = set; slot < set + kSharedWays; ++slot) {
    if (CopyFromSlot(slot, offset, out.subspan(0, part))) return part;
  }
  return 0;
}

// The bytes are those of the block if the entry says so before and after they were copied.
bool SharedBlocks::CopyFromSlot(uint64_t slot, uint64_t offset, absl::Span<char> out) const {
  const SharedBlockEntry& entry = entries_[slot];
  const uint64_t sequence = entry.sequence.load(std::memory_order_acquire);
  if (sequence % 2 != 0 || entry.block.load(std::memory_order_relaxed) != offset / kBlock ||
      cut_ < entry.first_cut.load(std::memory_order_relaxed) ||
      cut_ > entry.last_cut.load(std::memory_order_relaxed)) {
    return false;
  }
  const uint64_t from = SharedSlotOffset(slot, set_count_) + offset % kBlock;
  for (uint64_t done = 0; done < out.size();) {
    const ssize_t got =
        pread(bytes_.get(), out.data() + done, out.size() - done, static_cast<off_t>(from + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<uint64_t>(got);
  }
  std::atomic_thread_fence(std::memory_order_acquire);
  return entry.sequence.load(std::memory_order_relaxed) == sequence;
}

bool SharedBlocks::IsAlone() const {
  return alone_until_ != absl::InfinitePast() && absl::Now() < alone_until_;
}

bool SharedBlocks::Want(uint64_t first, uint64_t end) {
  if (IsAlone()) return false;
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(end - first, kSharedWantMax));
  const uint64_t next = first + count;  // It comes while this part is copied.
  if (next < end) {
    const auto more = static_cast<uint32_t>(std::min<uint64_t>(end - next, kSharedWantMax));
    Send({next, more, SharedWant::kAhead});
  }
  if (!Send({first, count, wait_kind_})) return false;
  SharedFilled filled{};
  // A late answer would be taken for that of the next question.
  if (!Receive(&filled) || filled.result == SharedFilled::kNever) connection_.Reset();
  const bool is_alone = filled.result == SharedFilled::kAlone;
  alone_until_ = is_alone ? absl::Now() + kAloneFor : absl::InfinitePast();
  return filled.result == SharedFilled::kFilled;
}

// Asks for the next blocks when half of those asked for ahead are left, so that the agent fetches
// them meanwhile.
void SharedBlocks::AskAhead(uint64_t offset, uint64_t length) {
  const uint64_t end = offset + length, end_block = (end + kBlock - 1) / kBlock;
  const bool goes_on = offset == run_end_;
  run_end_ = end;
  if (!goes_on || IsAlone()) {
    ahead_blocks_ = 0;
    ahead_end_ = 0;
    if (absl::Now() - last_sent_ > kSignOfLife) Send({0, 0, SharedWant::kAhead});
    return;
  }
  // Not more than a part of the memory, which others use too.
  const uint64_t most = std::min<uint64_t>(kSharedWantMax, set_count_ * kSharedWays / 8);
  if (ahead_end_ >= end_block + ahead_blocks_ / 2 && ahead_blocks_ > 0) return;
  ahead_blocks_ = std::min(most, std::max<uint64_t>(2 * ahead_blocks_, length / kBlock + 1));
  const uint64_t first = std::max(ahead_end_, end_block);
  const uint64_t last = std::min(block_count(), end_block + ahead_blocks_);
  if (first >= last) return;
  if (Send({first, static_cast<uint32_t>(last - first), SharedWant::kAhead})) ahead_end_ = last;
}

bool SharedBlocks::Send(SharedWant want) {
  if (!connection_.valid() || getpid() != owner_) return false;
  const ssize_t sent = send(connection_.get(), &want, sizeof(want), MSG_NOSIGNAL | MSG_DONTWAIT);
  last_sent_ = absl::Now();
  if (sent == sizeof(want)) return true;
  connection_.Reset();  // It has gone, or takes nothing.
  return false;
}

bool SharedBlocks::Receive(SharedFilled* filled) {
  const absl::Time deadline = absl::Now() + kFillWait;
  size_t done = 0;
  while (done < sizeof(*filled)) {
    const ssize_t got = recv(connection_.get(), reinterpret_cast<char*>(filled) + done,
                             sizeof(*filled) - done, MSG_DONTWAIT);
    if (got > 0) {
      done += static_cast<size_t>(got);
      continue;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) break;
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    pollfd wanted{connection_.get(), POLLIN, 0};
    if (left <= 0 || (poll(&wanted, 1, static_cast<int>(left)) < 0 && errno != EINTR)) break;
  }
  if (done == sizeof(*filled)) return true;
  *filled = {};
  return false;
}

}  // namespace h5mirror::rpc
