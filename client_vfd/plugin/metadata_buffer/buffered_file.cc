#include "client_vfd/plugin/metadata_buffer/buffered_file.h"

#include <errno.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

#include "client_vfd/plugin/host/fork_guard.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/metadata_buffer/buffer_fork.h"
#include "client_vfd/plugin/writes/swmr_write_mode.h"
#include "client_vfd/plugin/writes/write_class.h"

namespace h5mirror::vfd {
namespace {

constexpr uint64_t kNoEnd = std::numeric_limits<uint64_t>::max();

// Writes of raw data up to the first size are gathered, up to the second size in all. Gathering a
// larger write would save less than its two copies cost.
constexpr size_t kGatheredWriteMax = 64 << 10;
constexpr size_t kGatheredBytesMax = PutBuffers::kBytes;

// The overhead of one write that touches no other.
constexpr size_t kPieceBytes = 80;

// The sum over all files of the process, in all host libraries.
std::atomic<uint64_t> process_bytes{0};

// With BufferMutex(), for all files.
PutBuffers& Buffers() {
  static auto* buffers = new PutBuffers;
  return *buffers;
}

}  // namespace

BufferedFile::BufferedFile(Target target)
    : target_(std::move(target)), fork_generation_(ForkGeneration()), cut_end_(LocalSizeBytes()) {
  AddBufferedFile(this);
}

BufferedFile::~BufferedFile() {
  RemoveBufferedFile(this);
  const std::lock_guard lock(BufferMutex());  // A fork waits until nothing is in between.
  buffered_.TruncateTo(0);
  Recount();
}

bool BufferedFile::ReadLocal(uint64_t offset, size_t size, char* out) {
  return target_.under->Read(H5FD_MEM_DEFAULT, H5P_DEFAULT, offset, size, out) >= 0;
}

bool BufferedFile::WriteLocal(uint64_t offset, size_t size, const char* bytes) {
  return PassOn(H5FD_MEM_DEFAULT, H5P_DEFAULT, offset, size, bytes) >= 0;
}

uint64_t BufferedFile::LocalSizeBytes() const { return target_.under->Eof(H5FD_MEM_DEFAULT); }

// The local file's size is what this process knows of.
uint64_t BufferedFile::BlankFrom() const { return put_outside_cut_ ? kNoEnd : LocalSizeBytes(); }

herr_t BufferedFile::PassOn(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                            const void* buffer) {
  return target_.below->Write(type, dxpl, addr, size, buffer);
}

bool BufferedFile::InForkedChild() const { return ForkGeneration() != fork_generation_; }

bool BufferedFile::WritesThrough() const { return swmr_ || InForkedChild(); }

void BufferedFile::Recount() {
  const uint64_t bytes = buffered_.memory_bytes();
  process_bytes.fetch_add(bytes - counted_bytes_, std::memory_order_relaxed);
  counted_bytes_ = bytes;
}

bool BufferedFile::Put(uint64_t from, EqualBytes equal) {
  bool put = false;
  try {
    put = PutBuffered(from, kNoEnd, equal, buffered_, *this, Buffers());
  } catch (const std::bad_alloc&) {
  }
  Recount();
  if (!put) detector_.OnWrite(Outcome::kFailed);
  return put;
}

bool BufferedFile::PutAppended() {
  if (!Put(cut_end_, EqualBytes::kWrite)) return false;
  gathered_bytes_ = 0;
  return true;
}

// A disk that is full is found before anything of the last cut is overwritten.
bool BufferedFile::PutAll() {
  return buffered_.empty() || (PutAppended() && Put(0, EqualBytes::kSkip));
}

bool BufferedFile::PutOutsideCut() {
  put_outside_cut_ = true;
  return PutAll();
}

bool BufferedFile::PutGathered() {
  if (!PutAppended()) return false;
  if (buffered_.dead_bytes() >=
      buffered_.live_bytes()) {  // Else what is held would be copied too often.
    buffered_.Compact();
    Recount();
  }
  return true;
}

// Gathered data goes first, because writing it leaves the last cut in the file intact.
bool BufferedFile::MakeRoom() {
  if (gathered_bytes_ > 0) {
    if (!PutAppended()) return false;
    buffered_.Compact();
    Recount();
    if (process_bytes.load(std::memory_order_relaxed) <= target_.memory_bytes_max) return true;
  }
  return PutOutsideCut();
}

herr_t BufferedFile::Read(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size, void* buffer) {
  const Extent extent{addr, size};
  auto* out = static_cast<char*>(buffer);
  // Over the local read too: a fork would put what is then in neither.
  const std::lock_guard lock(BufferMutex());
  if (buffered_.Covers(extent)) {
    buffered_.CopyOver(extent, out);
    return 0;
  }
  const herr_t result = target_.under->Read(type, dxpl, addr, size, buffer);
  if (result >= 0) buffered_.CopyOver(extent, out);
  return result;
}

herr_t BufferedFile::Write(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                           const void* buffer) {
  const bool holds = type != H5FD_MEM_DRAW || IsGlobalHeap(size, buffer);
  if (holds && !WritesThrough()) {
    if (SwmrFlagOf(addr, size, buffer) != SwmrFlag::kSet) {
      const std::lock_guard lock(BufferMutex());
      return BufferOrPut(type, dxpl, addr, size, buffer);
    }
    BeginSwmr();
  }
  if (target_.gathers == Gathers::kRawData && size <= kGatheredWriteMax) {
    const std::lock_guard lock(BufferMutex());
    bool is_room = false;
    if (GathersRaw(addr) && !MakeRoomToGather(size, &is_room)) return -1;
    if (is_room) {
      gathered_bytes_ += size + kPieceBytes;
      return BufferOrPut(type, dxpl, addr, size, buffer);
    }
  }
  const herr_t result = WriteRaw(type, dxpl, addr, size, buffer);
  detector_.OnWrite(OutcomeOf(result));
  return result;
}

// Straight on; what was held there is older.
herr_t BufferedFile::WriteRaw(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                              const void* buffer) {
  const Extent extent{addr, size};
  std::unique_lock lock(BufferMutex());
  if (!buffered_.Intersects(extent)) {
    lock.unlock();  // It may wait for a server.
    return PassOn(type, dxpl, addr, size, buffer);
  }
  const herr_t result = PassOn(type, dxpl, addr, size, buffer);
  if (result < 0) return result;
  buffered_.Drop(extent);
  Recount();
  return result;
}

bool BufferedFile::GathersRaw(haddr_t addr) const {
  return addr >= cut_end_ && !put_outside_cut_ && !WritesThrough();
}

bool BufferedFile::MakeRoomToGather(size_t size, bool* is_room) {
  const auto memory_is_scarce = [&] {
    return process_bytes.load(std::memory_order_relaxed) > target_.memory_bytes_max / 2;
  };
  const bool is_full = gathered_bytes_ + size + kPieceBytes > kGatheredBytesMax;
  if ((is_full || memory_is_scarce()) && gathered_bytes_ > 0 && !PutGathered()) return false;
  *is_room = !memory_is_scarce();
  return true;
}

herr_t BufferedFile::BufferOrPut(H5FD_mem_t type, hid_t dxpl, haddr_t addr, size_t size,
                                 const void* buffer) {
  const std::string_view bytes(static_cast<const char*>(buffer), size);
  try {
    buffered_.Buffer(addr, bytes);
    Recount();
    const uint64_t held_bytes = process_bytes.load(std::memory_order_relaxed);
    return held_bytes <= target_.memory_bytes_max || MakeRoom() ? 0 : -1;
  } catch (const std::bad_alloc&) {
  }
  buffered_.Drop({addr, size});
  Recount();
  const herr_t result = PutOutsideCut() ? PassOn(type, dxpl, addr, size, buffer) : -1;
  detector_.OnWrite(OutcomeOf(result));
  return result;
}

void BufferedFile::BeginSwmr() {
  const std::lock_guard lock(BufferMutex());
  // Bytes that cannot be put now stay in memory and are read from there. The next flush tries
  // again.
  static_cast<void>(PutOutsideCut());
  swmr_ = true;
}

bool BufferedFile::CutOff(uint64_t size) {
  const std::lock_guard lock(BufferMutex());
  buffered_.TruncateTo(size);
  Recount();
  // Else the file would be made longer now, only to be written there at the flush.
  return InForkedChild() || buffered_.end() <= LocalSizeBytes() || PutAppended();
}

herr_t BufferedFile::Truncate(hid_t dxpl, hbool_t closing) {
  const haddr_t size = target_.under->Eoa(H5FD_MEM_DEFAULT);
  const herr_t result = CutOff(size) ? target_.below->Truncate(dxpl, closing) : -1;
  if (result >= 0) {
    const std::lock_guard lock(BufferMutex());
    cut_end_ = std::min<uint64_t>(cut_end_, size);
  }
  detector_.OnTruncate(PhaseOf(closing), OutcomeOf(result));
  return result;
}

herr_t BufferedFile::Flush(hid_t dxpl, hbool_t closing) {
  const bool child = InForkedChild();
  const bool cut = detector_.OnFlush(PhaseOf(closing), Outcome::kOk) == Moment::kFlush;
  bool put = true;
  if (!child && (cut || closing || swmr_)) {
    const std::lock_guard lock(BufferMutex());
    put = PutAll();
    if (put) {
      cut_end_ = LocalSizeBytes();
      put_outside_cut_ = false;
    }
  }
  const herr_t result = target_.below->Flush(dxpl, closing);
  if (child && FailOfInherited() < 0) return -1;
  return put ? result : -1;
}

haddr_t BufferedFile::Eof(H5FD_mem_t type) const {
  const std::lock_guard lock(BufferMutex());
  return std::max<haddr_t>(target_.under->Eof(type), buffered_.end());
}

herr_t BufferedFile::BeforeClose() {
  if (InForkedChild()) return FailOfInherited();
  const std::lock_guard lock(BufferMutex());
  return PutAll() ? 0 : -1;
}

void BufferedFile::BeforeFork() {
  // Bytes that could not be put stay buffered in the parent. Parent and child report it at their
  // next flush.
  if (!InForkedChild()) static_cast<void>(PutOutsideCut());
}

herr_t BufferedFile::FailOfInherited() {
  if (buffered_.empty()) return 0;
  PushWriteErrno(*target_.host, target_.name, EIO,
                 "the parent process could not write its buffered bytes before the fork; "
                 "flush the file in the parent, and open it again in the child");
  return -1;
}

}  // namespace h5mirror::vfd
