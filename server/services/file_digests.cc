// Files.DigestFile: what a version holds, without sending it.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/block_digest.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/services/files_service.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

constexpr uint32_t kBlockDefault = 1 << 20;
constexpr uint32_t kBlockMin = 512;
constexpr uint32_t kBlockMax = 16 << 20;
constexpr int kRangesMax = 65536;
// Read at once; blocks that are larger are read one by one.
constexpr uint64_t kChunkBytes = 1 << 20;
// A message goes out when it has so many bytes, or stands for so much of the file: the other side
// reads its own file meanwhile.
constexpr size_t kDigestBytesMax = 16384;
constexpr uint64_t kCoveredBytesMax = 64 << 20;

absl::StatusOr<uint32_t> BlockSize(uint32_t wanted) {
  if (wanted == 0) return kBlockDefault;
  if (wanted < kBlockMin || wanted > kBlockMax || (wanted & (wanted - 1)) != 0) {
    return absl::InvalidArgumentError(
        StrCat("block_size_bytes ", wanted, ": a power of two in 512..16777216, or 0"));
  }
  return wanted;
}

// The ranges of a request on a version of `size_bytes`; all of it where there are none.
absl::StatusOr<std::vector<Extent>> RangesOf(const v1::DigestFileRequest& request,
                                             uint32_t block_size, uint64_t size_bytes) {
  if (request.ranges_size() > kRangesMax) {
    return absl::InvalidArgumentError(
        StrCat(request.ranges_size(), " ranges: at most ", kRangesMax, " in one call"));
  }
  std::vector<Extent> ranges;
  uint64_t end = 0;
  for (const v1::ByteRange& range : request.ranges()) {
    const Extent extent{range.offset(), range.length_bytes()};
    const auto bad = [&](const auto&... why) {
      return absl::InvalidArgumentError(StrCat("ranges[", ranges.size(), "] at ", extent.offset,
                                               ", ", extent.length, " bytes long: ", why...));
    };
    if (extent.length == 0) return bad("it is empty");
    if (extent.offset > size_bytes || extent.length > size_bytes - extent.offset) {
      return bad("the version has ", size_bytes, " bytes");
    }
    if (extent.offset < end) return bad("it does not begin after the one before");
    if (extent.offset % block_size != 0 ||
        (extent.end() % block_size != 0 && extent.end() != size_bytes)) {
      return bad("it is not of whole blocks of ", block_size, " bytes");
    }
    end = extent.end();
    ranges.push_back(extent);
  }
  if (request.ranges().empty() && size_bytes > 0) ranges.push_back({0, size_bytes});
  return ranges;
}

}  // namespace

// One call.
class FilesService::DigestParts final : public TypedStreamSource<v1::DigestFileResponse> {
 public:
  DigestParts(FilesService& service, v1::DigestFileRequest request)
      : service_(service), request_(std::move(request)) {}

  absl::StatusOr<Next> Fill(const StreamTurn&, v1::DigestFileResponse& response) override {
    if (reader_ == nullptr) {
      H5M_RETURN_IF_ERROR(Open(response));
      return Next::kMessage;
    }
    if (next_range_ < ranges_.size()) H5M_RETURN_IF_ERROR(AddChunk());
    const bool is_over = next_range_ == ranges_.size();
    const bool is_full = digests_.size() >= kDigestBytesMax || covered_bytes_ >= kCoveredBytesMax;
    if (!is_over && !is_full) return Next::kNothingYet;
    if (digests_.empty()) return Next::kEnd;
    covered_bytes_ = 0;
    response.mutable_digests()->swap(digests_);
    return is_over ? Next::kLastMessage : Next::kMessage;
  }

 private:
  absl::Status Open(v1::DigestFileResponse& response) {
    H5M_RETURN_IF_ERROR(store::CheckName(request_.name()));
    H5M_ASSIGN_OR_RETURN(block_size_, BlockSize(request_.block_size_bytes()));
    H5M_ASSIGN_OR_RETURN(file_, service_.environment_.store.OpenFile(request_.name()));
    H5M_ASSIGN_OR_RETURN(auto reader, file_->OpenVersion(request_.version()));
    H5M_ASSIGN_OR_RETURN(ranges_, RangesOf(request_, block_size_, reader->info().size_bytes));
    request_.clear_ranges();
    reader_ = std::move(reader);
    zeros_.emplace(block_size_);
    *response.mutable_version() = ToProto(reader_->info());
    return absl::OkStatus();
  }

  // The next chunk of the ranges that are left.
  absl::Status AddChunk() {
    Extent& range = ranges_[next_range_];
    const uint64_t chunk_max = std::max<uint64_t>(kChunkBytes, block_size_);
    const Extent chunk{range.offset, std::min(chunk_max, range.length)};
    H5M_ASSIGN_OR_RETURN(const bool hole, IsHole(chunk));
    // Not kept: a call that nobody reads holds digests alone.
    std::unique_ptr<char[]> data;
    if (!hole) {
      data = std::make_unique_for_overwrite<char[]>(chunk.length);
      H5M_RETURN_IF_ERROR(reader_->Read(chunk.offset, absl::MakeSpan(data.get(), chunk.length)));
    }
    for (uint64_t at = 0; at < chunk.length; at += block_size_) {
      const uint64_t size = std::min<uint64_t>(block_size_, chunk.length - at);
      const BlockDigest digest =
          hole ? zeros_->Of(size) : DigestOf(std::string_view(data.get() + at, size));
      digests_.append(digest.data(), digest.size());
    }
    covered_bytes_ += chunk.length;
    range = {chunk.end(), range.length - chunk.length};
    if (range.length == 0) ++next_range_;
    return absl::OkStatus();
  }

  // Whether nothing but zeros is there, as far as it is known without reading.
  absl::StatusOr<bool> IsHole(Extent chunk) {
    if (!data_known_ || (data_.length > 0 && data_.end() <= chunk.offset)) {
      H5M_ASSIGN_OR_RETURN(data_, reader_->NextData(chunk.offset));
      data_known_ = true;
    }
    return data_.length == 0 || data_.offset >= chunk.end();
  }

  FilesService& service_;
  v1::DigestFileRequest request_;
  std::shared_ptr<store::File> file_;
  std::unique_ptr<store::VersionReader> reader_;  // null: not opened yet
  uint32_t block_size_ = 0;
  std::vector<Extent> ranges_;  // what is left of them
  size_t next_range_ = 0;
  std::optional<ZeroDigests> zeros_;
  Extent data_;  // the next that is not a hole; length 0: none
  bool data_known_ = false;
  std::string digests_;  // not sent yet
  uint64_t covered_bytes_ = 0;
};

StreamReactor* FilesService::DigestFile(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* bytes) {
  return StartStream<v1::DigestFileRequest>(
      environment_, *context, "DigestFile", Right::kRead, *bytes,
      [this](v1::DigestFileRequest request, const Principal&) {
        return std::make_unique<DigestParts>(*this, std::move(request));
      });
}

}  // namespace h5mirror::server
