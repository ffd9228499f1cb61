// Files.DigestFile: what a version holds, without sending it.
#include <algorithm>
#include <vector>

#include "base/block_digest.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/convert.h"
#include "server/files_service.h"

namespace h5mirror::server {
namespace {

constexpr uint32_t kBlockDefault = 1 << 20;
constexpr uint32_t kBlockMin = 4096;
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
        StrCat("block_size_bytes ", wanted, ": a power of two in 4096..16777216, or 0"));
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

// One call.
class Digester {
 public:
  Digester(const grpc::ServerContext& context, store::VersionReader& reader, uint32_t block_size,
           grpc::ServerWriter<v1::DigestFileResponse>& writer)
      : context_(context),
        reader_(reader),
        block_size_(block_size),
        writer_(writer),
        zeros_(block_size) {}

  absl::Status Add(Extent range) {
    for (uint64_t offset = range.offset; offset < range.end();) {
      if (context_.IsCancelled()) return Gone();
      const uint64_t chunk_max = std::max<uint64_t>(kChunkBytes, block_size_);
      const Extent chunk{offset, std::min(chunk_max, range.end() - offset)};
      H5M_RETURN_IF_ERROR(AddChunk(chunk));
      offset = chunk.end();
      covered_bytes_ += chunk.length;
      if (response_.digests().size() >= kDigestBytesMax || covered_bytes_ >= kCoveredBytesMax) {
        H5M_RETURN_IF_ERROR(Flush());
      }
    }
    return absl::OkStatus();
  }

  absl::Status Flush() {
    covered_bytes_ = 0;
    if (response_.digests().empty()) return absl::OkStatus();
    if (!writer_.Write(response_)) return Gone();
    response_.Clear();
    return absl::OkStatus();
  }

 private:
  static absl::Status Gone() { return absl::CancelledError("the caller has gone"); }

  absl::Status AddChunk(Extent chunk) {
    H5M_ASSIGN_OR_RETURN(const bool hole, IsHole(chunk));
    if (!hole) {
      buffer_.resize(chunk.length);
      H5M_RETURN_IF_ERROR(reader_.Read(chunk.offset, absl::MakeSpan(buffer_)));
    }
    for (uint64_t at = 0; at < chunk.length; at += block_size_) {
      const uint64_t size = std::min<uint64_t>(block_size_, chunk.length - at);
      const BlockDigest digest =
          hole ? zeros_.Of(size) : DigestOf(std::string_view(buffer_.data() + at, size));
      response_.mutable_digests()->append(digest.data(), digest.size());
    }
    return absl::OkStatus();
  }

  // Whether nothing but zeros is there, as far as it is known without reading.
  absl::StatusOr<bool> IsHole(Extent chunk) {
    if (!data_known_ || (data_.length > 0 && data_.end() <= chunk.offset)) {
      H5M_ASSIGN_OR_RETURN(data_, reader_.NextData(chunk.offset));
      data_known_ = true;
    }
    return data_.length == 0 || data_.offset >= chunk.end();
  }

  const grpc::ServerContext& context_;
  store::VersionReader& reader_;
  const uint32_t block_size_;
  grpc::ServerWriter<v1::DigestFileResponse>& writer_;
  ZeroDigests zeros_;
  Extent data_;  // the next that is not a hole; length 0: none
  bool data_known_ = false;
  std::vector<char> buffer_;
  v1::DigestFileResponse response_;
  uint64_t covered_bytes_ = 0;
};

}  // namespace

grpc::Status FilesService::DigestFile(grpc::ServerContext* context,
                                      const v1::DigestFileRequest* request,
                                      grpc::ServerWriter<v1::DigestFileResponse>* writer) {
  return RunCall(environment_, *context, "DigestFile", Right::kRead,
                 [&](const Principal&) { return Digest(*context, *request, *writer); });
}

absl::Status FilesService::Digest(const grpc::ServerContext& context,
                                  const v1::DigestFileRequest& request,
                                  grpc::ServerWriter<v1::DigestFileResponse>& writer) {
  H5M_RETURN_IF_ERROR(store::CheckName(request.name()));
  H5M_ASSIGN_OR_RETURN(const uint32_t block_size, BlockSize(request.block_size_bytes()));
  H5M_ASSIGN_OR_RETURN(const std::shared_ptr<store::File> file,
                       environment_.store.OpenFile(request.name()));
  H5M_ASSIGN_OR_RETURN(const auto reader, file->OpenVersion(request.version()));
  H5M_ASSIGN_OR_RETURN(const std::vector<Extent> ranges,
                       RangesOf(request, block_size, reader->info().size_bytes));
  v1::DigestFileResponse first;
  *first.mutable_version() = ToProto(reader->info());
  if (!writer.Write(first)) return absl::CancelledError("the caller has gone");
  Digester digester(context, *reader, block_size, writer);
  for (const Extent range : ranges) H5M_RETURN_IF_ERROR(digester.Add(range));
  return digester.Flush();
}

}  // namespace h5mirror::server
