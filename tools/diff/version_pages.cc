#include "tools/diff/version_pages.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::tools {
namespace {

constexpr int kAttemptsMax = 4;
constexpr uint64_t kAheadBytesMax = 256 << 10;
constexpr uint64_t kFetchBytesMax = 1 << 20;

}  // namespace

VersionPages::VersionPages(rpc::Client& client, Options options, ExtentSet changed)
    : client_(client),
      options_(std::move(options)),
      changed_(std::move(changed)),
      sources_{Source(*this, Side::kOld), Source(*this, Side::kNew)} {
  for (size_t i = 0; i < 2; ++i) {
    names_[i] = StrCat(options_.file, "@", options_.versions[i].version());
    sizes_[i] = static_cast<uint64_t>(options_.versions[i].size_bytes());
  }
}

VersionPages::Key VersionPages::KeyOf(Side side, uint64_t page) const {
  const uint64_t size = options_.page_size_bytes;
  return {changed_.Intersects({page * size, size}) ? side : Side::kOld, page};
}

const std::string* VersionPages::Find(Side side, uint64_t page) {
  const auto found = cache_.find(KeyOf(side, page));
  if (found == cache_.end()) return nullptr;
  used_.splice(used_.begin(), used_, found->second.place);
  return &found->second.bytes;
}

void VersionPages::Put(Side side, uint64_t page, std::string bytes) {
  const Key key = KeyOf(side, page);
  used_.push_front(key);
  cache_[key] = {std::move(bytes), used_.begin()};
  while (used_.size() * options_.page_size_bytes > options_.cache_bytes) {
    cache_.erase(used_.back());
    used_.pop_back();
  }
}

absl::Status VersionPages::Read(Side side, uint64_t offset, absl::Span<char> out) {
  const uint64_t page_bytes = options_.page_size_bytes;
  while (!out.empty()) {
    if (offset >= size_bytes(side)) {
      std::memset(out.data(), 0, out.size());
      break;
    }
    const uint64_t page = offset / page_bytes, skip = offset % page_bytes;
    const std::string* bytes = Find(side, page);
    if (bytes == nullptr) {
      if (error_.ok()) {
        error_ = Fetch(side, page, (skip + out.size() + page_bytes - 1) / page_bytes);
      }
      H5M_RETURN_IF_ERROR(error_);
      bytes = Find(side, page);
    }
    const uint64_t length = std::min<uint64_t>(out.size(), page_bytes - skip);
    std::memcpy(out.data(), bytes->data() + skip, length);
    offset += length;
    out.remove_prefix(length);
  }
  return absl::OkStatus();
}

absl::Status VersionPages::Fetch(Side side, uint64_t page, uint64_t wanted_count) {
  const uint64_t page_bytes = options_.page_size_bytes;
  Ahead& ahead = ahead_[IndexOf(side)];
  const uint64_t ahead_max = std::max<uint64_t>(1, kAheadBytesMax / page_bytes);
  ahead.page_count = page == ahead.next_page ? std::min(ahead.page_count * 2, ahead_max) : 1;
  const uint64_t end_page = (size_bytes(side) + page_bytes - 1) / page_bytes;
  const uint64_t count_max = std::min(
      {std::max(wanted_count, ahead.page_count), kFetchBytesMax / page_bytes, end_page - page});
  uint64_t count = 1;
  while (count < count_max && !cache_.contains(KeyOf(side, page + count))) ++count;
  std::string bytes(count * page_bytes, '\0');
  H5M_RETURN_IF_ERROR(FetchRange(side, page * page_bytes, absl::MakeSpan(bytes)));
  // Backwards: the first one, which is wanted now, is the last to leave the cache.
  for (uint64_t i = count; i-- > 0;) {
    Put(side, page + i, bytes.substr(i * page_bytes, page_bytes));
  }
  ahead.next_page = page + count;
  pages_read_ += count;
  if (on_fetch_) on_fetch_();
  return absl::OkStatus();
}

absl::Status VersionPages::FetchRange(Side side, uint64_t offset, absl::Span<char> out) {
  v1::ReadVersionRequest request;
  request.set_name(options_.file);
  request.set_version(options_.versions[IndexOf(side)].version());
  request.set_offset(offset);
  request.set_length_bytes(out.size());
  const auto take = [&](const v1::ReadVersionResponse& piece) -> absl::Status {
    if (piece.data().empty()) return absl::OkStatus();
    if (piece.offset() < offset || piece.offset() - offset > out.size() ||
        piece.data().size() > out.size() - (piece.offset() - offset)) {
      return absl::DataLossError(StrCat("read ", name(side), ": the server sent ",
                                        piece.data().size(), " bytes at ", piece.offset(),
                                        ", which were not asked for"));
    }
    const uint32_t crc = Crc32c(piece.data());
    if (crc != piece.data_crc32c()) {
      return absl::DataLossError(absl::StrFormat(
          "read %s at offset %d: checksum 0x%08x != 0x%08x; bytes were damaged on the way, try "
          "again",
          name(side), piece.offset(), crc, piece.data_crc32c()));
    }
    std::memcpy(out.data() + (piece.offset() - offset), piece.data().data(), piece.data().size());
    return absl::OkStatus();
  };
  absl::Status status;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    if (attempt > 0) absl::SleepFor(absl::Milliseconds(200 << attempt));
    status = client_.ReadVersion(request, take);
    if (!absl::IsUnavailable(status)) break;
  }
  return status;
}

}  // namespace h5mirror::tools
