#include "swmr_agent/cut_image.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "swmr_agent/block_splitter.h"

namespace h5mirror::agent {
namespace {

constexpr uint64_t kRunBlocksMax = 64;  // 4 MiB at once
// Of what is fetched with no reader that waits for it: the first part, and the time for one.
constexpr uint64_t kPartBlocksMin = 16;
constexpr absl::Duration kPartTime = absl::Milliseconds(50);
constexpr absl::Duration kFetchWait = absl::Seconds(15);
constexpr size_t kSweepMin = 1024;  // blocks
// So long after the last reader the memory that was made is kept for the next cut's.
constexpr absl::Duration kMemoryUnused = absl::Seconds(10);

absl::Status Late(uint64_t offset) {
  return absl::UnavailableError(
      StrCat("bytes at ", offset, " are being fetched for another reader, and are late"));
}

absl::Status NoRoom() {
  return absl::ResourceExhaustedError("readers have half of the cache mapped: no room for more");
}

}  // namespace

CutImage::CutImage(std::shared_ptr<BlockPool> pool, uint64_t size_bytes, rpc::RangeReader fetch)
    : CutImage(pool, size_bytes, std::move(fetch), std::make_shared<BlockWindows>(pool), 1) {}

CutImage::CutImage(std::shared_ptr<BlockPool> pool, uint64_t size_bytes, rpc::RangeReader fetch,
                   std::shared_ptr<BlockWindows> windows, uint64_t window_cut)
    : pool_(std::move(pool)),
      size_bytes_(size_bytes),
      windows_(std::move(windows)),
      window_cut_(window_cut),
      fetch_(std::move(fetch)) {}

uint64_t CutImage::BlockBytes(uint64_t index) const {
  return std::min(kBlockBytes, size_bytes_ - index * kBlockBytes);
}

// With the bytes that only one of the two cuts has.
std::vector<Extent> CutImage::ChangedTo(uint64_t size_bytes,
                                        absl::Span<const Extent> changed) const {
  std::vector<Extent> all;
  const uint64_t end = std::min(size_bytes, size_bytes_);
  for (const Extent& extent : changed) {
    if (extent.length > 0 && extent.offset < end) {
      all.push_back({extent.offset, std::min(extent.end(), end) - extent.offset});
    }
  }
  if (size_bytes != size_bytes_) all.push_back({end, std::max(size_bytes, size_bytes_) - end});
  return all;
}

std::shared_ptr<CutImage> CutImage::Next(uint64_t size_bytes, rpc::RangeReader fetch,
                                         absl::Span<const Extent> changed) {
  const uint64_t window_cut = windows_->Next(window_cut_, ChangedTo(size_bytes, changed));
  std::shared_ptr<CutImage> next(
      new CutImage(pool_, size_bytes, std::move(fetch), windows_, window_cut));
  absl::MutexLock lock(&mutex_);
  absl::MutexLock next_lock(&next->mutex_);  // Nobody else knows of it.
  for (const auto& [index, block] : blocks_) {
    if (index * kBlockBytes < size_bytes && !pool_->IsEmpty(block)) {
      next->blocks_.emplace_hint(next->blocks_.end(), index, block);
    }
  }
  if (absl::Now() - memory_use_ < kMemoryUnused) {
    next->memory_ = memory_;
    next->memory_use_ = memory_use_;
  }
  next->metadata_ = metadata_;
  next->metadata_.erase(next->metadata_.lower_bound((size_bytes + kBlockBytes - 1) / kBlockBytes),
                        next->metadata_.end());
  for (const Extent& extent : changed) {
    if (extent.length > 0) next->Forget(extent.offset, extent.end());
  }
  if (size_bytes != size_bytes_) {
    const uint64_t end = std::min(size_bytes, size_bytes_);
    next->Forget(end, std::max(size_bytes, size_bytes_));
  }
  return next;
}

void CutImage::Forget(uint64_t begin, uint64_t end) {
  auto at = blocks_.lower_bound(begin / kBlockBytes);
  while (at != blocks_.end() && at->first * kBlockBytes < end) {
    const uint64_t start = at->first * kBlockBytes;
    BlockPtr rest = pool_->CopyWithout(at->second, BlockBytes(at->first),
                                       std::max(begin, start) - start, end - start);
    if (rest == nullptr) {
      at = blocks_.erase(at);
    } else {
      at++->second = std::move(rest);
    }
  }
}

void CutImage::Learn(uint64_t offset, std::string_view pages) {
  while (!pages.empty() && offset < size_bytes_) {
    const uint64_t index = offset / kBlockBytes, within = offset % kBlockBytes;
    const uint64_t part = std::min<uint64_t>(pages.size(), kBlockBytes - within);
    pool_->Patch(BlockAt(index), within, pages.substr(0, part), Kind::kMetadata);
    {
      absl::MutexLock lock(&mutex_);
      metadata_.insert(index);
    }
    offset += part;
    pages.remove_prefix(part);
  }
}

void CutImage::SetFetch(rpc::RangeReader fetch) {
  absl::MutexLock lock(&mutex_);
  fetch_ = std::move(fetch);
}

rpc::RangeReader CutImage::fetch() {
  absl::MutexLock lock(&mutex_);
  return fetch_;
}

BlockPtr CutImage::BlockAt(uint64_t index) {
  absl::MutexLock lock(&mutex_);
  const auto found = blocks_.find(index);
  if (found != blocks_.end()) return found->second;
  if (blocks_.size() >= std::max(sweep_at_, kSweepMin)) Sweep();
  return blocks_[index] = std::make_shared<Block>(BlockBytes(index));
}

// The pool bounds what is known, so that each sweep finds room for as many as are left.
void CutImage::Sweep() {
  std::erase_if(blocks_, [this](const auto& entry) { return pool_->IsEmpty(entry.second); });
  sweep_at_ = 2 * blocks_.size();
}

size_t CutImage::block_count() {
  absl::MutexLock lock(&mutex_);
  return blocks_.size();
}

absl::Status CutImage::Read(uint64_t offset, uint64_t length, rpc::RangeSink sink) {
  offset = std::min(offset, size_bytes_);
  const uint64_t end = offset + std::min(length, size_bytes_ - offset);
  const absl::Time deadline = absl::Now() + kFetchWait;
  const auto send = [&](const std::string& bytes) {
    const uint64_t skip = offset % kBlockBytes;
    const uint64_t part = std::min<uint64_t>(end - offset, bytes.size() - skip);
    const absl::Status sent = sink(offset, std::string_view(bytes).substr(skip, part));
    offset += part;
    return sent;
  };
  while (offset < end) {
    const uint64_t index = offset / kBlockBytes;
    const BlockPtr block = BlockAt(index);
    if (const BytesPtr bytes = pool_->Get(block)) {
      H5M_RETURN_IF_ERROR(send(*bytes));
      continue;
    }
    std::string shared(block->length_bytes(), '\0');
    if (windows_->Find(window_cut_, index, &shared)) {
      H5M_RETURN_IF_ERROR(send(shared));
      continue;
    }
    const std::vector<BlockPtr> run = ClaimRun(index, (end + kBlockBytes - 1) / kBlockBytes);
    if (run.empty()) {
      if (!pool_->AwaitRelease(block, deadline)) {
        return Late(offset);
      }
      continue;
    }
    std::vector<BytesPtr> fetched;
    const auto keep = [&](uint64_t, const BlockPtr& of, std::string_view bytes) {
      fetched.push_back(pool_->Fill(of, std::string(bytes), Kind::kRaw));
    };
    H5M_RETURN_IF_ERROR(FetchRun(index, run, keep));
    for (const BytesPtr& bytes : fetched) {
      if (offset < end) H5M_RETURN_IF_ERROR(send(*bytes));
    }
  }
  return absl::OkStatus();
}

std::vector<BlockPtr> CutImage::ClaimRun(uint64_t index, uint64_t end_index) {
  std::vector<BlockPtr> run;
  for (; index < end_index && run.size() < kRunBlocksMax; ++index) {
    if (windows_->Find(window_cut_, index, nullptr)) break;
    BlockPtr block = BlockAt(index);
    if (pool_->TryClaim(block) != BlockPool::Claim::kClaimed) break;
    run.push_back(std::move(block));
  }
  return run;
}

std::vector<BlockPtr> CutImage::ClaimAround(uint64_t* index, uint64_t end_index, uint64_t around) {
  const uint64_t blocks = (size_bytes_ + kBlockBytes - 1) / kBlockBytes;
  const uint64_t first = *index / around * around;
  std::vector<BlockPtr> run =
      ClaimRun(*index, std::max(end_index, std::min(first + around, blocks)));
  while (!run.empty() && run.size() < kRunBlocksMax && *index > first) {
    std::vector<BlockPtr> before = ClaimRun(*index - 1, *index);
    if (before.empty()) break;
    run.insert(run.begin(), std::move(before.front()));
    --*index;
  }
  return run;
}

bool CutImage::ShareKnown(const WindowPtr& window, uint64_t index, const BlockPtr& block,
                          absl::Status* shared) {
  if (windows_->Has(window, window_cut_, index)) return true;
  std::string copy(block->length_bytes(), '\0');
  const BytesPtr bytes = pool_->Get(block);
  if (bytes == nullptr && !windows_->Find(window_cut_, index, &copy)) return false;
  if (!windows_->Put(window, window_cut_, index, bytes != nullptr ? *bytes : copy)) {
    *shared = NoRoom();
  }
  return true;
}

absl::Status CutImage::Share(const WindowPtr& window, uint64_t first, uint64_t count) {
  const uint64_t blocks = (size_bytes_ + kBlockBytes - 1) / kBlockBytes;
  first = std::min(first, blocks);
  const uint64_t end = first + std::min(count, blocks - first);
  const absl::Time deadline = absl::Now() + kFetchWait;
  absl::Status shared;
  for (uint64_t index = first; index < end && shared.ok();) {
    const BlockPtr block = BlockAt(index);
    if (ShareKnown(window, index, block, &shared)) {
      ++index;
      continue;
    }
    const uint64_t around = windows_->Around(window, window_cut_, size_bytes_);
    uint64_t begin = index;
    const std::vector<BlockPtr> run = ClaimAround(&begin, end, around);
    if (run.empty()) {
      if (!pool_->AwaitRelease(block, deadline)) return Late(index * kBlockBytes);
      continue;
    }
    H5M_RETURN_IF_ERROR(FetchInto(window, begin, run, &shared));
    index = begin + run.size();
  }
  return shared;
}

absl::Status CutImage::FetchInto(const WindowPtr& window, uint64_t index,
                                 const std::vector<BlockPtr>& run, absl::Status* shared) {
  // What the window has no memory for is not fetched in vain.
  const auto keep = [&](uint64_t at, const BlockPtr& of, std::string_view bytes) {
    if (windows_->Put(window, window_cut_, at, bytes)) return;
    pool_->Fill(of, std::string(bytes), Kind::kRaw);
    *shared = NoRoom();
  };
  return FetchRun(index, run, keep);
}

// A part is short: readers that wait for one of its blocks wait for all of those before it.
void CutImage::ShareMore(const WindowPtr& window, uint64_t after,
                         absl::FunctionRef<bool()> goes_on) {
  const uint64_t blocks = (size_bytes_ + kBlockBytes - 1) / kBlockBytes;
  uint64_t left = windows_->BeginMore(window, window_cut_, size_bytes_);
  if (left == 0) return;
  const absl::Cleanup end = [&] { windows_->EndMore(window); };
  uint64_t part = kPartBlocksMin;
  absl::Status shared;
  for (uint64_t looked = 0; looked < blocks && left > 0 && shared.ok() && goes_on();) {
    const uint64_t index = (after + looked) % blocks;
    const uint64_t most = std::min({part, left, blocks - index, blocks - looked});
    const std::vector<BlockPtr> run = ClaimRun(index, index + most);
    looked += std::max<uint64_t>(1, run.size());
    if (run.empty()) continue;
    const absl::Time begin = absl::Now();
    if (!FetchInto(window, index, run, &shared).ok()) return;
    left -= run.size();
    const absl::Duration took = absl::Now() - begin;
    if (took > kPartTime) part = std::max<uint64_t>(1, part / 2);
    if (took < kPartTime / 2) part = std::min(2 * part, kRunBlocksMax);
  }
}

absl::Status CutImage::FetchRun(uint64_t index, const std::vector<BlockPtr>& run, Keep keep) {
  size_t done = 0;
  const absl::Cleanup release = [&] {
    for (; done < run.size(); ++done) pool_->Release(run[done]);
  };
  const auto hand_out = [&](uint64_t at, std::string_view bytes) {
    keep(at, run[done], bytes);
    pool_->Release(run[done++]);
    return absl::OkStatus();
  };
  const uint64_t begin = index * kBlockBytes;
  const uint64_t end = std::min(begin + run.size() * kBlockBytes, size_bytes_);
  BlockSplitter splitter(begin, end, hand_out);
  const auto take = [&](uint64_t offset, std::string_view data) {
    return splitter.Take(offset, data);
  };
  H5M_RETURN_IF_ERROR(fetch()(begin, end - begin, take, nullptr));
  return splitter.Finish();
}

std::vector<CutMemory::Block> CutImage::KnownMetadata(bool* has_all) {
  std::vector<CutMemory::Block> known;
  absl::MutexLock lock(&mutex_);
  for (const uint64_t index : metadata_) {
    const auto found = blocks_.find(index);
    if (found == blocks_.end()) continue;
    CutMemory::Block block{index, pool_->Peek(found->second)};
    if (block.known.pages != 0) known.push_back(std::move(block));
  }
  *has_all = known.size() == metadata_.size();
  return known;
}

absl::StatusOr<std::shared_ptr<const CutMemory>> CutImage::Memory() {
  absl::MutexLock making(&memory_mutex_);
  std::shared_ptr<const CutMemory> memory;
  bool is_own;
  {
    absl::MutexLock lock(&mutex_);
    memory = memory_;
    is_own = memory_is_own_;
    memory_use_ = absl::Now();
  }
  bool has_all = false;
  const std::vector<CutMemory::Block> known = KnownMetadata(&has_all);
  if (known.empty()) return absl::NotFoundError("no metadata of the cut is known yet");
  uint64_t pages = 0;
  for (const CutMemory::Block& block : known) pages += std::popcount(block.known.pages);
  const bool is_enough = is_own && pages <= memory->page_count() + memory->page_count() / 8 &&
                         (memory->has_all() || !has_all);
  if (is_enough) return memory;
  H5M_ASSIGN_OR_RETURN(memory, CutMemory::Make(pool_, size_bytes_, known, has_all, memory.get()));
  absl::MutexLock lock(&mutex_);
  memory_ = memory;
  memory_is_own_ = true;
  return memory;
}

absl::Status CutImage::ReadAhead(Extent read, rpc::MetadataAhead& ahead) {
  uint64_t next = (ahead.from + kBlockBytes - 1) / kBlockBytes;
  for (uint64_t sent = 0;;) {
    std::optional<uint64_t> index;
    {
      absl::MutexLock lock(&mutex_);
      auto found = metadata_.lower_bound(next);
      while (found != metadata_.end() && *found * kBlockBytes < read.end() &&
             read.offset < (*found + 1) * kBlockBytes) {
        ++found;
      }
      if (found != metadata_.end()) index = *found;
    }
    ahead.next = index.value_or(0) * kBlockBytes;
    if (!index || sent >= ahead.length_bytes) return absl::OkStatus();
    BytesPtr bytes = pool_->Get(BlockAt(*index));
    if (bytes == nullptr) {
      H5M_RETURN_IF_ERROR(FetchAhead(*index, ahead.length_bytes - sent));
      bytes = pool_->Get(BlockAt(*index));
    }
    // The pool is too small to keep it: then the reader asks for what it needs.
    if (bytes == nullptr) return absl::OkStatus();
    H5M_RETURN_IF_ERROR(ahead.sink(*index * kBlockBytes, *bytes));
    sent += bytes->size();
    next = *index + 1;
  }
}

// One at a time: the second caller finds the blocks that the first has fetched.
absl::Status CutImage::FetchAhead(uint64_t index, uint64_t length) {
  absl::MutexLock lock(&ahead_mutex_);
  if (pool_->Get(BlockAt(index)) != nullptr) return absl::OkStatus();
  const uint64_t begin = index * kBlockBytes;
  std::string block(BlockBytes(index), '\0');
  const auto take = [&](uint64_t offset, std::string_view data) -> absl::Status {
    if (offset < begin || data.size() > begin + block.size() - offset) {
      return absl::InternalError("the server sent other bytes than were asked for");
    }
    block.replace(offset - begin, data.size(), data);
    return absl::OkStatus();
  };
  const auto take_ahead = [&](uint64_t offset, std::string_view blocks) -> absl::Status {
    const bool is_whole =
        offset % kBlockBytes == 0 && offset <= size_bytes_ &&
        blocks.size() <= size_bytes_ - offset &&
        (blocks.size() % kBlockBytes == 0 || offset + blocks.size() == size_bytes_);
    if (!is_whole) return absl::InternalError("the server sent metadata that is not whole blocks");
    KeepAhead(offset, blocks);
    return absl::OkStatus();
  };
  rpc::MetadataAhead ahead{begin + kBlockBytes, length, take_ahead};
  H5M_RETURN_IF_ERROR(fetch()(begin, block.size(), take, &ahead));
  KeepAhead(begin, block);
  return absl::OkStatus();
}

void CutImage::KeepAhead(uint64_t offset, std::string_view blocks) {
  for (; !blocks.empty(); blocks.remove_prefix(std::min<uint64_t>(kBlockBytes, blocks.size()))) {
    const uint64_t index = offset / kBlockBytes;
    pool_->Fill(BlockAt(index), std::string(blocks.substr(0, kBlockBytes)), Kind::kMetadata);
    {
      absl::MutexLock lock(&mutex_);
      metadata_.insert(index);
    }
    offset += kBlockBytes;
  }
}

}  // namespace h5mirror::agent
