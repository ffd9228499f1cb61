#include "h5diff/version_pages.h"

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

absl::Status FetchVersion(rpc::Client& client, const v1::ReadVersionRequest& version,
                          const std::string& name, uint64_t offset, absl::Span<char> out) {
  v1::ReadVersionRequest request = version;
  request.set_offset(offset);
  request.set_length_bytes(out.size());
  const auto take = [&](const v1::ReadVersionResponse& piece) -> absl::Status {
    if (piece.data().empty()) return absl::OkStatus();
    if (piece.offset() < offset || piece.offset() - offset > out.size() ||
        piece.data().size() > out.size() - (piece.offset() - offset)) {
      return absl::DataLossError(StrCat("read ", name, ": the server sent ", piece.data().size(),
                                        " bytes at ", piece.offset(),
                                        ", which were not asked for"));
    }
    const uint32_t crc = Crc32c(piece.data());
    if (crc != piece.data_crc32c()) {
      return absl::DataLossError(absl::StrFormat(
          "read %s at offset %d: checksum 0x%08x != 0x%08x; bytes were damaged on the way, try "
          "again",
          name, piece.offset(), crc, piece.data_crc32c()));
    }
    std::memcpy(out.data() + (piece.offset() - offset), piece.data().data(), piece.data().size());
    return absl::OkStatus();
  };
  absl::Status status;
  for (int attempt = 0; attempt < kAttemptsMax; ++attempt) {
    if (attempt > 0) absl::SleepFor(absl::Milliseconds(200 << attempt));
    status = client.ReadVersion(request, take);
    if (!absl::IsUnavailable(status)) break;
  }
  return status;
}

}  // namespace

VersionPages::OneSide SideOfVersion(rpc::Client& client, const std::string& file,
                                    const v1::Version& version) {
  v1::ReadVersionRequest request;
  request.set_name(file);
  request.set_version(version.version());
  const std::string name = StrCat(file, "@", version.version());
  return {name, static_cast<uint64_t>(version.size_bytes()),
          [&client, request, name](uint64_t offset, absl::Span<char> out) {
            return FetchVersion(client, request, name, offset, out);
          }};
}

VersionPages::VersionPages(rpc::Client& client, Options options, ExtentSet changed)
    : VersionPages({SideOfVersion(client, options.file, options.versions[0]),
                    SideOfVersion(client, options.file, options.versions[1])},
                   options.page_size_bytes, options.cache_bytes, std::move(changed)) {}

VersionPages::VersionPages(std::array<OneSide, 2> sides, uint32_t page_size_bytes,
                           uint64_t cache_bytes, ExtentSet changed)
    : sides_(std::move(sides)),
      page_size_bytes_(page_size_bytes),
      cache_bytes_(cache_bytes),
      changed_(std::move(changed)),
      sources_{Source(*this, Side::kOld), Source(*this, Side::kNew)} {}

void VersionPages::Advance(OneSide next, ExtentSet changed) {
  for (auto at = used_.begin(); at != used_.end();) {
    const auto [side, page] = *at;
    const bool is_stale = side == Side::kOld && KeyOf(Side::kNew, page).first == Side::kNew;
    if (is_stale) cache_.erase(*at);
    at = is_stale ? used_.erase(at) : std::next(at);
  }
  for (Key& key : used_) {
    if (key.first == Side::kOld) continue;
    auto moved = cache_.extract(key);
    key.first = moved.key().first = Side::kOld;
    cache_.insert(std::move(moved));
  }
  sides_[0] = std::exchange(sides_[1], std::move(next));
  changed_ = std::move(changed);
  ahead_ = {};
  pages_read_ = 0;
  error_ = absl::OkStatus();
  time_is_up_ = false;
}

void VersionPages::Learn(uint64_t offset, std::string_view bytes) {
  for (uint64_t page = offset / page_size_bytes_; !bytes.empty(); ++page) {
    const size_t length = std::min<size_t>(bytes.size(), page_size_bytes_);
    std::string whole(bytes.substr(0, length));
    whole.resize(page_size_bytes_);
    if (!cache_.contains(KeyOf(Side::kNew, page))) Put(Side::kNew, page, std::move(whole));
    bytes.remove_prefix(length);
  }
}

void VersionPages::Limit(uint64_t pages_max, absl::Time until) {
  pages_max_ = pages_max;
  until_ = until;
}

absl::Status VersionPages::CheckLimits(uint64_t page_count) {
  if (pages_read_ + page_count > pages_max_) {
    return absl::ResourceExhaustedError(StrCat("more than ", pages_max_, " pages to read"));
  }
  time_is_up_ = absl::Now() >= until_;
  return time_is_up_ ? absl::DeadlineExceededError("it takes too long") : absl::OkStatus();
}

VersionPages::Key VersionPages::KeyOf(Side side, uint64_t page) const {
  const uint64_t size = page_size_bytes_;
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
  while (used_.size() * page_size_bytes_ > cache_bytes_) {
    cache_.erase(used_.back());
    used_.pop_back();
  }
}

absl::Status VersionPages::Read(Side side, uint64_t offset, absl::Span<char> out) {
  const uint64_t page_bytes = page_size_bytes_;
  // Checked for cached pages too: a reader may go on for long with these.
  if (error_.ok()) error_ = CheckLimits(0);
  H5M_RETURN_IF_ERROR(error_);
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
  const uint64_t page_bytes = page_size_bytes_;
  Ahead& ahead = ahead_[IndexOf(side)];
  const uint64_t ahead_max = std::max<uint64_t>(1, kAheadBytesMax / page_bytes);
  ahead.page_count = page == ahead.next_page ? std::min(ahead.page_count * 2, ahead_max) : 1;
  const uint64_t end_page = (size_bytes(side) + page_bytes - 1) / page_bytes;
  const uint64_t count_max = std::min(
      {std::max(wanted_count, ahead.page_count), kFetchBytesMax / page_bytes, end_page - page});
  uint64_t count = 1;
  while (count < count_max && !cache_.contains(KeyOf(side, page + count))) ++count;
  H5M_RETURN_IF_ERROR(CheckLimits(count));
  std::string bytes(count * page_bytes, '\0');
  const uint64_t there = std::min(count * page_bytes, size_bytes(side) - page * page_bytes);
  H5M_RETURN_IF_ERROR(
      sides_[IndexOf(side)].read_at(page * page_bytes, absl::MakeSpan(bytes).subspan(0, there)));
  // Backwards: the first one, which is wanted now, is the last to leave the cache.
  for (uint64_t i = count; i-- > 0;) {
    Put(side, page + i, bytes.substr(i * page_bytes, page_bytes));
  }
  ahead.next_page = page + count;
  pages_read_ += count;
  if (on_fetch_) on_fetch_();
  return absl::OkStatus();
}

}  // namespace h5mirror::tools
