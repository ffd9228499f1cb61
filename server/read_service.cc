// ReadVersion: the bytes of a version.
#include <algorithm>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/convert.h"
#include "server/parts_ahead.h"
#include "server/send_metadata.h"
#include "server/versions_service.h"

namespace h5mirror::server {
namespace {

// Bytes of one message.
constexpr uint64_t kPartBytes = 512 << 10;
// From here on the next message is read while one is sent. A short answer is not worth a thread.
constexpr uint64_t kAheadBytes = 2 * kPartBytes;
constexpr int kRangesMax = 1 << 16;
constexpr int kReadersMax = 8;

using Part = v1::ReadVersionResponse;

// [begin, end) but for what reads as zeros anyway.
class OneRange {
 public:
  OneRange(store::VersionReader& reader, uint64_t begin, uint64_t end)
      : reader_(reader), offset_(begin), end_(end) {}

  absl::StatusOr<bool> operator()(Part& part) {
    if (offset_ >= data_end_) {
      if (offset_ >= end_) return false;
      H5M_ASSIGN_OR_RETURN(const Extent data, reader_.NextData(offset_));
      if (data.length == 0 || data.offset >= end_) return false;
      // The reader may answer with a range that began before.
      data_end_ = std::min(data.end(), end_);
      offset_ = std::max(offset_, data.offset);
    }
    std::string& bytes = *part.mutable_data();
    bytes.resize(std::min(kPartBytes, data_end_ - offset_));
    H5M_RETURN_IF_ERROR(reader_.Read(offset_, absl::MakeSpan(bytes)));
    part.set_offset(offset_);
    part.set_data_crc32c(Crc32c(bytes));
    offset_ += bytes.size();
    return true;
  }

 private:
  store::VersionReader& reader_;
  uint64_t offset_;
  const uint64_t end_;
  uint64_t data_end_ = 0;  // of the data that `offset_` is in
};

// All bytes of `ranges`, as many ranges as fit in a message.
class ManyRanges {
 public:
  ManyRanges(store::VersionReader& reader, std::vector<Extent> ranges)
      : reader_(reader), ranges_(std::move(ranges)) {}

  absl::StatusOr<bool> operator()(Part& part) {
    if (next_ == ranges_.size()) return false;
    std::vector<Extent> pieces;
    uint64_t room = kPartBytes;
    while (next_ < ranges_.size() && room > 0) {
      Extent& range = ranges_[next_];
      const uint64_t length = std::min(room, range.length);
      pieces.push_back({range.offset, length});
      room -= length;
      range = {range.offset + length, range.length - length};
      if (range.length == 0) ++next_;
    }
    std::string& bytes = *part.mutable_data();
    bytes.resize(kPartBytes - room);
    H5M_RETURN_IF_ERROR(reader_.ReadRanges(pieces, absl::MakeSpan(bytes)));
    part.clear_pieces();
    for (const Extent& piece : pieces) {
      v1::ByteRange& sent = *part.add_pieces();
      sent.set_offset(piece.offset);
      sent.set_length_bytes(piece.length);
    }
    part.set_offset(pieces.front().offset);
    part.set_data_crc32c(Crc32c(bytes));
    return true;
  }

 private:
  store::VersionReader& reader_;
  std::vector<Extent> ranges_;  // what is left of them
  size_t next_ = 0;
};

// kInvalidArgument: not rising and apart, not within the version, or too many.
absl::StatusOr<std::vector<Extent>> WantedRanges(const v1::ReadVersionRequest& request,
                                                 uint64_t size_bytes) {
  if (request.ranges_size() > kRangesMax) {
    return absl::InvalidArgumentError(
        StrCat(request.ranges_size(), " ranges are too many: at most ", kRangesMax));
  }
  std::vector<Extent> ranges;
  ranges.reserve(request.ranges_size());
  uint64_t end = 0;
  for (const v1::ByteRange& range : request.ranges()) {
    const bool follows = ranges.empty() || range.offset() > end;
    const bool fits = range.length_bytes() > 0 && range.offset() <= size_bytes &&
                      range.length_bytes() <= size_bytes - range.offset();
    if (!follows || !fits) {
      return absl::InvalidArgumentError(
          StrCat("range of ", range.length_bytes(), " bytes at ", range.offset(),
                 ": ranges must rise, be apart, not be empty, and end within the version's ",
                 size_bytes, " bytes"));
    }
    end = range.offset() + range.length_bytes();
    ranges.push_back({range.offset(), range.length_bytes()});
  }
  return ranges;
}

absl::Status Send(PartsAhead::Read read, uint64_t total_bytes, WorkerPool& pool,
                  grpc::ServerWriter<Part>& writer) {
  std::optional<PartsAhead> ahead;
  if (total_bytes >= kAheadBytes) ahead.emplace(pool, read);
  Part part;
  for (;;) {
    H5M_ASSIGN_OR_RETURN(const bool more, ahead ? ahead->Next(part) : read(part));
    if (!more) return absl::OkStatus();
    if (!writer.Write(part)) return absl::CancelledError("the caller has gone");
  }
}

}  // namespace

int VersionsService::ReaderCount() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kReadersMax);
}

grpc::Status VersionsService::ReadVersion(grpc::ServerContext* context,
                                          const v1::ReadVersionRequest* request,
                                          grpc::ServerWriter<v1::ReadVersionResponse>* writer) {
  return RunCall(environment_, *context, "ReadVersion", Right::kRead,
                 [&](const Principal&) { return Read(*request, *writer); });
}

absl::Status VersionsService::Read(const v1::ReadVersionRequest& request,
                                   grpc::ServerWriter<Part>& writer) {
  H5M_RETURN_IF_ERROR(CheckVersion(request.version()));
  H5M_ASSIGN_OR_RETURN(const auto file, OpenToRead(request.name()));
  H5M_ASSIGN_OR_RETURN(const auto reader, file->OpenVersion(request.version()));
  const uint64_t size = reader->info().size_bytes;
  H5M_ASSIGN_OR_RETURN(std::vector<Extent> ranges, WantedRanges(request, size));
  v1::ReadVersionResponse first;
  *first.mutable_version() = ToProto(reader->info());
  if (!writer.Write(first)) return absl::CancelledError("the caller has gone");
  if (!ranges.empty()) {
    const uint64_t total = TotalBytes(ranges);
    return Send(ManyRanges(*reader, std::move(ranges)), total, readers_, writer);
  }
  const uint64_t begin = std::min(request.offset(), size);
  const uint64_t wanted = request.length_bytes() == 0 ? size : request.length_bytes();
  const uint64_t length = std::min(wanted, size - begin);
  H5M_RETURN_IF_ERROR(Send(OneRange(*reader, begin, begin + length), length, readers_, writer));
  if (!request.is_metadata()) return absl::OkStatus();
  MetadataParts<Part, v1::ReadVersionRequest> ahead(*file, size, request, {begin, length});
  const auto read_at = [&](absl::Span<const Extent> wanted, absl::Span<char> out) {
    return reader->ReadRanges(wanted, out);
  };
  for (Part part; ahead.Next(read_at, kPartBytes, part);) {
    if (!writer.Write(part)) return absl::CancelledError("the caller has gone");
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::server
