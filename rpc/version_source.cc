#include "rpc/version_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::rpc {
namespace {

constexpr uint64_t kBlock = BlockCache::kBlockBytes;
constexpr uint64_t kPage = 4096;  // as the server's, of metadata
constexpr uint64_t kRawWindowMax = 8 << 20;
constexpr uint64_t kMetadataWindowMax = 1 << 20;
// Raw data that is read here and there, in pieces of at least this, is fetched to the byte.
constexpr uint64_t kExactMin = kBlock / 2;
// Of a run's window, from which on a call stays open; and of its ring, at least.
constexpr uint64_t kStreamFrom = 1 << 20;
// An open call is given up for another run where the last so many fetches passed it by.
constexpr int kFetchesBeside = 4;
// After so many calls in a row that brought nothing no more are tried.
constexpr int kVainStreams = 3;
// A server that took so long to bring nothing is not asked for another stream in the same read.
constexpr absl::Duration kVainWait = absl::Seconds(1);
constexpr uint64_t kAheadFirst = 256 << 10;
constexpr uint64_t kAheadGrowth = 2;
constexpr uint64_t kAheadMax = 8 << 20;

uint64_t BlockDown(uint64_t offset) { return offset / kBlock * kBlock; }

// Distributes the bytes of one fetched range: to the caller, and in whole blocks to the cache.
class Collector {
 public:
  using Keep = absl::FunctionRef<void(uint64_t index, std::string bytes)>;
  // Which blocks: none; those that the caller is not given whole; all.
  enum class Keeping { kNone, kPartial, kAll };

  // Fetches [begin, end), of which `out` is the part from `out_begin` on. `begin` is that of a
  // block if any are kept.
  Collector(uint64_t begin, uint64_t end, uint64_t out_begin, absl::Span<char> out, Keeping keeping,
            Keep keep)
      : at_(begin), end_(end), out_begin_(out_begin), out_(out), keeping_(keeping), keep_(keep) {}

  absl::Status Take(uint64_t offset, std::string_view data) {
    if (offset < at_ || offset > end_ || data.size() > end_ - offset) {
      return absl::InternalError(StrCat("the server sent bytes [", offset, ", +", data.size(),
                                        "), and [", at_, ", ", end_, ") was asked for"));
    }
    Feed(nullptr, offset - at_);
    Feed(data.data(), data.size());
    return absl::OkStatus();
  }

  // Bytes that did not come are zeros.
  void Finish() { Feed(nullptr, end_ - at_); }

 private:
  void Feed(const char* data, uint64_t length) {
    while (length > 0) {
      const uint64_t block = BlockDown(at_);
      const uint64_t part = std::min(length, std::min(block + kBlock, end_) - at_);
      ToCaller(data, part);
      if (Keeps(block)) ToBlock(data, part, block);
      at_ += part;
      length -= part;
      if (data != nullptr) data += part;
    }
  }

  void ToCaller(const char* data, uint64_t length) {
    const uint64_t from = std::max(at_, out_begin_);
    const uint64_t to = std::min(at_ + length, out_begin_ + out_.size());
    if (from >= to) return;
    Copy(out_.data() + (from - out_begin_), data == nullptr ? nullptr : data + (from - at_),
         to - from);
  }

  bool Keeps(uint64_t block) const {
    const bool whole =
        block >= out_begin_ && std::min(block + kBlock, end_) <= out_begin_ + out_.size();
    return keeping_ == Keeping::kAll || (keeping_ == Keeping::kPartial && !whole);
  }

  void ToBlock(const char* data, uint64_t length, uint64_t block) {
    if (at_ == block) bytes_.resize(std::min(kBlock, end_ - block));
    Copy(bytes_.data() + (at_ - block), data, length);
    if (at_ + length == block + bytes_.size()) keep_(block / kBlock, std::exchange(bytes_, {}));
  }

  static void Copy(char* to, const char* from, uint64_t length) {
    if (from == nullptr) {
      std::memset(to, 0, length);
    } else {
      std::memcpy(to, from, length);
    }
  }

  uint64_t at_;  // the next byte
  const uint64_t end_;
  const uint64_t out_begin_;
  const absl::Span<char> out_;
  const Keeping keeping_;
  const Keep keep_;
  std::string bytes_;  // of the block of `at_`, up to there
};

}  // namespace

absl::Status CheckAnswer(const v1::ReadVersionResponse& answer, const v1::Version& version) {
  if (answer.has_version()) {
    const v1::Version& now = answer.version();
    // A file that was made again may reach the same numbers, but not at the same time.
    if (now.version() == version.version() && now.cut() == version.cut() &&
        now.size_bytes() == version.size_bytes() &&
        now.server_time().seconds() == version.server_time().seconds() &&
        now.server_time().nanos() == version.server_time().nanos()) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(
        StrCat("version ", version.version(),
               " is not the one that was opened: the file was made again on the server; reopen"));
  }
  if (Crc32c(answer.data()) == answer.data_crc32c()) return absl::OkStatus();
  return absl::DataLossError(StrCat("bytes at ", answer.offset(), " were damaged on the way"));
}

absl::Status CheckSnapshot(const v1::Snapshot& now, const v1::Snapshot& opened) {
  const bool is_other_file =
      !now.file_id().empty() && !opened.file_id().empty() && now.file_id() != opened.file_id();
  if (!is_other_file && now.cut() == opened.cut() && now.generation() == opened.generation() &&
      now.size_bytes() == opened.size_bytes()) {
    return absl::OkStatus();
  }
  return absl::OutOfRangeError(
      StrCat("snapshot expired, reopen: cut ", opened.cut(),
             " is another one now, the file was made again on the server"));
}

RangeReader RangesOf(Client& client, std::string name, const v1::Version& version) {
  return [&client, name = std::move(name), version](uint64_t offset, uint64_t length,
                                                    RangeSink sink, MetadataAhead* ahead) {
    v1::ReadVersionRequest request;
    request.set_name(name);
    request.set_version(version.version());
    request.set_offset(offset);
    request.set_length_bytes(length);
    AskAhead(ahead, request);
    return client.ReadVersion(request, [&](const v1::ReadVersionResponse& answer) {
      H5M_RETURN_IF_ERROR(CheckAnswer(answer, version));
      return answer.has_version() ? absl::OkStatus() : TakeData(answer, sink, ahead);
    });
  };
}

VersionSource::VersionSource(const std::string& identity, uint64_t size_bytes, RangeReader reader,
                             std::shared_ptr<BlockCache> cache, StreamReader stream)
    : size_bytes_(size_bytes),
      reader_(std::move(reader)),
      cache_(std::move(cache)),
      owner_(cache_->OwnerOf(identity)),
      page_owner_(cache_->OwnerOf(StrCat(identity, "\npages"))),
      stream_(std::move(stream)),
      scattered_(size_bytes) {}

VersionSource::~VersionSource() {
  StopAhead();
  if (brings_ahead_) cache_->EndAhead(owner_);
}

void VersionSource::Preload(std::string bytes) {
  if (bytes.empty() || bytes.size() != std::min(kBlock, size_bytes_)) return;
  cache_->Insert(owner_, 0, ReadKind::kMetadata, std::move(bytes));
  runs_[static_cast<size_t>(ReadKind::kMetadata)] = {std::min(kBlock, size_bytes_), kBlock};
}

void VersionSource::UseKnown(KnownBytes known, bool has_metadata) {
  known_ = std::move(known);
  ahead_ended_ = ahead_ended_ || has_metadata;
}

absl::Status VersionSource::Read(uint64_t offset, absl::Span<char> out, ReadKind kind) {
  const uint64_t inside = offset < size_bytes_ ? size_bytes_ - offset : 0;
  if (inside < out.size()) {
    std::memset(out.data() + inside, 0, out.size() - inside);
    out = out.subspan(0, inside);
  }
  const uint64_t here = ReadHere(offset, out, kind);
  offset += here;
  out.remove_prefix(here);
  while (!out.empty()) {
    uint64_t done = MissingBytes(offset, out.size());
    if (const uint64_t copied = done > 0 ? CopyFromPage(offset, out) : 0; copied > 0) {
      done = copied;
    } else if (done > 0) {
      H5M_ASSIGN_OR_RETURN(done, Obtain(offset, out.subspan(0, done), kind));
    } else {
      done = CopyFromCache(offset, out);
    }
    offset += done;  // Nothing, where a block was just evicted by another source.
    out.remove_prefix(done);
  }
  return absl::OkStatus();
}

uint64_t VersionSource::CopyFromCache(uint64_t offset, absl::Span<char> out) {
  const uint64_t skip = offset % kBlock;
  uint64_t part = std::min<uint64_t>(out.size(), kBlock - skip);
  uint64_t ahead = 0;
  const BlockCache::Block block = cache_->Use(owner_, offset / kBlock, part, &ahead);
  if (block == nullptr) return 0;
  scattered_.OnUsed(ahead);
  part = std::min<uint64_t>(part, block->size() - skip);
  std::memcpy(out.data(), block->data() + skip, part);
  return part;
}

// HDF5 reads object headers with bytes behind them that may be raw data: these do not make it fetch
// what is known. Raw data is read as a whole in one way, which notices reads in order.
uint64_t VersionSource::ReadHere(uint64_t offset, absl::Span<char> out, ReadKind kind) {
  uint64_t done = known_ && !out.empty() ? known_(offset, out) : 0;
  if (done < out.size() && kind == ReadKind::kRaw) done = 0;
  if (shared_ && done < out.size()) done += shared_(offset + done, out.subspan(done), kind);
  return done;
}

uint64_t VersionSource::MissingBytes(uint64_t offset, uint64_t length) {
  const uint64_t end = offset + length;
  uint64_t at = offset;
  while (at < end && !cache_->Holds(owner_, at / kBlock)) at = BlockDown(at) + kBlock;
  return std::min(at, end) - offset;
}

absl::StatusOr<uint64_t> VersionSource::Obtain(uint64_t offset, absl::Span<char> out,
                                               ReadKind kind) {
  if (kind == ReadKind::kRaw) {
    const absl::Time begin = absl::Now();
    uint64_t taken = TakeAhead(offset, out);
    // After a long wait in vain the fetch tells why, with no second one before it.
    const bool may_start = taken == 0 && absl::Now() - begin < kVainWait;
    if (may_start && StartAhead(offset)) taken = TakeAhead(offset, out);
    if (taken != 0) return taken;
  }
  H5M_RETURN_IF_ERROR(Fetch(offset, out, kind));
  return out.size();
}

uint64_t VersionSource::TakeAhead(uint64_t offset, absl::Span<char> out) {
  if (ahead_ == nullptr || !ahead_->Covers(BlockDown(offset))) return 0;
  fetches_beside_ahead_ = 0;
  uint64_t taken = 0;
  const uint64_t whole = offset + out.size() == size_bytes_ ? out.size() : BlockDown(out.size());
  if (offset % kBlock == 0 && whole > 0) {  // A scan passes by the cache.
    taken = ahead_->Take(offset, out.subspan(0, whole));
  } else {
    const uint64_t block = BlockDown(offset);
    std::string bytes(std::min(kBlock, size_bytes_ - block), '\0');
    if (ahead_->Take(block, absl::MakeSpan(bytes)) == bytes.size()) {
      taken = std::min<uint64_t>(out.size(), block + bytes.size() - offset);
      std::memcpy(out.data(), bytes.data() + (offset - block), taken);
      cache_->Insert(owner_, block / kBlock, ReadKind::kRaw, std::move(bytes));
    }
  }
  Run& run = runs_[static_cast<size_t>(ReadKind::kRaw)];
  run = {BlockDown(ahead_->next()), kStreamFrom};  // From where another call would go on.
  return taken;
}

bool VersionSource::StartAhead(uint64_t offset) {
  if (stream_ == nullptr) return false;
  const uint64_t begin = BlockDown(offset);
  const Run& run = runs_[static_cast<size_t>(ReadKind::kRaw)];
  if ((offset != run.end && begin != run.end) || run.window_bytes < kStreamFrom) return false;
  if (ahead_ != nullptr && ahead_->Covers(ahead_->next()) &&
      ++fetches_beside_ahead_ <= kFetchesBeside) {
    return false;
  }
  StopAhead();
  if (vain_streams_ >= kVainStreams) return false;
  const uint64_t ring = std::min(kRawWindowMax, BlockDown(cache_->capacity_bytes() / 4));
  if (ring < kStreamFrom || !cache_->Reserve(ring)) return false;
  ring_bytes_ = ring;
  ahead_ = ReadAhead::Start(stream_, begin, size_bytes_, ring, 2 * kStreamFrom);
  if (ahead_ == nullptr) StopAhead();
  return ahead_ != nullptr;
}

void VersionSource::StopAhead() {
  if (ahead_ != nullptr) vain_streams_ = ahead_->came() ? 0 : vain_streams_ + 1;
  ahead_.reset();
  cache_->Unreserve(std::exchange(ring_bytes_, 0));
  fetches_beside_ahead_ = 0;
}

uint64_t VersionSource::NextWindow(uint64_t offset, uint64_t begin, ReadKind kind) {
  Run& run = runs_[static_cast<size_t>(kind)];
  const uint64_t most = kind == ReadKind::kRaw ? kRawWindowMax : kMetadataWindowMax;
  const uint64_t limit = std::max(kBlock, std::min(most, BlockDown(cache_->capacity_bytes() / 4)));
  const bool goes_on = begin == run.end || offset == run.end;
  run.window_bytes = goes_on ? std::min(2 * run.window_bytes, limit) : kBlock;
  return run.window_bytes;
}

absl::Status VersionSource::Fetch(uint64_t offset, absl::Span<char> out, ReadKind kind) {
  const uint64_t begin = BlockDown(offset);
  const uint64_t window = NextWindow(offset, begin, kind);
  const bool is_scattered = kind == ReadKind::kRaw && window == kBlock;
  if (is_scattered) {
    const BlockRange wanted{begin / kBlock, (offset + out.size() + kBlock - 1) / kBlock};
    const BlockRange around = AroundOf(wanted);
    if (around != wanted) return FetchAround(around, wanted, offset, out);
    if (out.size() >= kExactMin) return FetchExactly(offset, out);
  }
  uint64_t end = BlockDown(offset + out.size() + kBlock - 1);
  end = std::min(std::max(end, begin + window), size_bytes_);
  // A scan of raw data passes by the cache; metadata is wanted again.
  const auto keep = [&](uint64_t index, std::string bytes) {
    cache_->Insert(owner_, index, kind, std::move(bytes));
  };
  const bool is_metadata = kind == ReadKind::kMetadata;
  Collector collector(begin, end, offset, out,
                      is_metadata ? Collector::Keeping::kAll : Collector::Keeping::kPartial, keep);
  const auto take = [&](uint64_t at, std::string_view data) { return collector.Take(at, data); };
  const auto take_ahead = [&](uint64_t at, std::string_view data) { return KeepAhead(at, data); };
  // If the whole file fits into the cache, the bytes between are likely to be wanted too.
  const bool as_pages = size_bytes_ > AheadBudget();
  MetadataAhead ahead{ahead_from_, is_metadata ? NextAheadBytes() : 0, take_ahead, 0, as_pages};
  H5M_RETURN_IF_ERROR(reader_(begin, end - begin, take, is_metadata ? &ahead : nullptr));
  collector.Finish();
  if (is_scattered) scattered_.OnAlone(begin, end - begin);
  Run& run = runs_[static_cast<size_t>(kind)];
  run = {end, std::max(run.window_bytes, end - begin)};
  if (ahead.length_bytes > 0) {
    ahead_from_ = ahead.next;
    ahead_ended_ = ahead.next == 0;
  }
  return absl::OkStatus();
}

absl::Status VersionSource::FetchExactly(uint64_t offset, absl::Span<char> out) {
  const uint64_t end = offset + out.size();
  Collector collector(offset, end, offset, out, Collector::Keeping::kNone,
                      [](uint64_t, std::string) {});
  const auto take = [&](uint64_t at, std::string_view data) { return collector.Take(at, data); };
  H5M_RETURN_IF_ERROR(reader_(offset, out.size(), take, nullptr));
  collector.Finish();
  scattered_.OnAlone(offset, out.size());
  runs_[static_cast<size_t>(ReadKind::kRaw)] = {end, std::max(kBlock, BlockDown(out.size()))};
  return absl::OkStatus();
}

BlockRange VersionSource::AroundOf(BlockRange wanted) {
  // The cache has lost them: what came ahead makes room for bytes that are read again.
  if (scattered_.HaveCome(wanted)) {
    const uint64_t room_bytes = scattered_.OnRepeat();
    if (brings_ahead_) cache_->GiveUpAhead(room_bytes);
  }
  return scattered_.Around(wanted, cache_->room_ahead_bytes());
}

absl::Status VersionSource::FetchAround(BlockRange around, BlockRange wanted, uint64_t offset,
                                        absl::Span<char> out) {
  if (!std::exchange(brings_ahead_, true)) cache_->BeginAhead(owner_);
  const uint64_t begin = around.begin * kBlock;
  const uint64_t end = std::min(around.end * kBlock, size_bytes_);
  const auto keep = [&](uint64_t index, std::string bytes) {
    const bool is_wanted = wanted.begin <= index && index < wanted.end;
    const uint64_t given = is_wanted ? std::min(offset + out.size(), (index + 1) * kBlock) -
                                           std::max(offset, index * kBlock)
                                     : 0;
    const uint64_t unread = scattered_.UnreadBytes(index);
    cache_->InsertAhead(owner_, index, std::move(bytes), unread - std::min(unread, given));
  };
  Collector collector(begin, end, offset, out, Collector::Keeping::kPartial, keep);
  const auto take = [&](uint64_t at, std::string_view data) { return collector.Take(at, data); };
  H5M_RETURN_IF_ERROR(reader_(begin, end - begin, take, nullptr));
  collector.Finish();
  scattered_.OnCame(around, wanted, out.size());
  // A read that goes on there may be one by chance: its window begins small.
  runs_[static_cast<size_t>(ReadKind::kRaw)] = {end, kBlock};
  return absl::OkStatus();
}

uint64_t VersionSource::AheadBudget() { return cache_->capacity_bytes() / 4 * 3; }

uint64_t VersionSource::NextAheadBytes() {
  const uint64_t budget = AheadBudget();
  if (ahead_ended_ || ahead_bytes_ >= budget) return 0;
  ahead_window_bytes_ = std::clamp(ahead_window_bytes_ * kAheadGrowth, kAheadFirst, kAheadMax);
  return std::min(ahead_window_bytes_, budget - ahead_bytes_);
}

absl::Status VersionSource::KeepAhead(uint64_t offset, std::string_view bytes) {
  const bool is_whole = !bytes.empty() && offset % kPage == 0 && offset <= size_bytes_ &&
                        bytes.size() <= size_bytes_ - offset &&
                        (bytes.size() % kPage == 0 || offset + bytes.size() == size_bytes_);
  if (!is_whole) {
    return absl::InternalError(StrCat("the server sent ", bytes.size(), " bytes of metadata at ",
                                      offset, ", which are not whole pages of the file"));
  }
  ahead_bytes_ += bytes.size();
  while (!bytes.empty()) {
    const uint64_t block = std::min(kBlock, size_bytes_ - BlockDown(offset));
    const bool is_block = offset % kBlock == 0 && bytes.size() >= block;
    const uint64_t part = is_block ? block : std::min<uint64_t>(kPage, bytes.size());
    cache_->Insert(is_block ? owner_ : page_owner_, offset / (is_block ? kBlock : kPage),
                   ReadKind::kMetadata, std::string(bytes.substr(0, part)));
    offset += part;
    bytes.remove_prefix(part);
  }
  return absl::OkStatus();
}

uint64_t VersionSource::CopyFromPage(uint64_t offset, absl::Span<char> out) {
  const BlockCache::Block page = cache_->Find(page_owner_, offset / kPage);
  if (page == nullptr) return 0;
  const uint64_t skip = offset % kPage;
  const uint64_t part = std::min<uint64_t>(out.size(), page->size() - skip);
  std::memcpy(out.data(), page->data() + skip, part);
  return part;
}

}  // namespace h5mirror::rpc
