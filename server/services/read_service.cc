// ReadVersion: the bytes of a version.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/calls/disk_ahead.h"
#include "server/calls/send_metadata.h"
#include "server/services/versions_service.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

constexpr int kRangesMax = 1 << 16;

using Part = v1::ReadVersionResponse;

// The bytes [begin, end), without holes that read as zeros.
class OneRange {
 public:
  OneRange(store::VersionReader& reader, uint64_t begin, uint64_t end)
      : reader_(reader), offset_(begin), end_(end) {}

  // False: nothing is left.
  absl::StatusOr<bool> Next(uint64_t part_bytes, Part& part) {
    if (offset_ >= data_end_) {
      if (offset_ >= end_) return false;
      H5M_ASSIGN_OR_RETURN(const Extent data, reader_.NextData(offset_));
      if (data.length == 0 || data.offset >= end_) return false;
      // The reader may answer with a range that began before.
      data_end_ = std::min(data.end(), end_);
      offset_ = std::max(offset_, data.offset);
    }
    std::string& bytes = *part.mutable_data();
    bytes.resize(std::min(part_bytes, data_end_ - offset_));
    disk_.Keep(reader_, offset_, bytes.size(), data_end_);
    H5M_RETURN_IF_ERROR(reader_.Read(offset_, absl::MakeSpan(bytes)));
    part.set_offset(offset_);
    part.set_data_crc32c(Crc32c(bytes));
    offset_ += bytes.size();
    return true;
  }
  bool is_over() const { return offset_ >= end_; }

 private:
  store::VersionReader& reader_;
  uint64_t offset_;
  const uint64_t end_;
  uint64_t data_end_ = 0;  // of the data that `offset_` is in
  DiskAhead disk_;
};

// All bytes of `ranges`, as many ranges as fit in a message.
class ManyRanges {
 public:
  ManyRanges(store::VersionReader& reader, std::vector<Extent> ranges)
      : reader_(reader), ranges_(std::move(ranges)) {}

  // False: nothing is left.
  absl::StatusOr<bool> Next(uint64_t part_bytes, Part& part) {
    if (next_ == ranges_.size()) return false;
    std::vector<Extent> pieces;
    uint64_t room = part_bytes;
    while (next_ < ranges_.size() && room > 0) {
      Extent& range = ranges_[next_];
      const uint64_t length = std::min(room, range.length);
      pieces.push_back({range.offset, length});
      room -= length;
      range = {range.offset + length, range.length - length};
      if (range.length == 0) ++next_;
    }
    std::string& bytes = *part.mutable_data();
    bytes.resize(part_bytes - room);
    H5M_RETURN_IF_ERROR(reader_.ReadRanges(pieces, absl::MakeSpan(bytes)));
    for (const Extent& piece : pieces) {
      v1::ByteRange& sent = *part.add_pieces();
      sent.set_offset(piece.offset);
      sent.set_length_bytes(piece.length);
    }
    part.set_offset(pieces.front().offset);
    part.set_data_crc32c(Crc32c(bytes));
    return true;
  }
  bool is_over() const { return next_ == ranges_.size(); }

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

}  // namespace

// The messages of one call.
class VersionsService::ReadParts final : public TypedStreamSource<Part> {
 public:
  ReadParts(VersionsService& service, v1::ReadVersionRequest request)
      : service_(service), request_(std::move(request)) {}

  absl::StatusOr<Next> Fill(const StreamTurn& turn, Part& part) override {
    if (reader_ == nullptr) {
      H5M_RETURN_IF_ERROR(Open(part));
      return Next::kMessage;
    }
    if (!is_range_sent_) {
      const auto next = [&](auto& ranges) { return ranges.Next(turn.part_bytes, part); };
      H5M_ASSIGN_OR_RETURN(const bool more, std::visit(next, *ranges_));
      const auto is_over = [](const auto& ranges) { return ranges.is_over(); };
      const bool is_last = !ahead_ && std::visit(is_over, *ranges_);
      if (more) return is_last ? Next::kLastMessage : Next::kMessage;
      is_range_sent_ = true;
    }
    if (!ahead_) return Next::kEnd;
    const auto read_at = [this](absl::Span<const Extent> wanted, absl::Span<char> out) {
      return reader_->ReadRanges(wanted, out);
    };
    return ahead_->Next(read_at, turn.part_bytes, part) ? Next::kMessage : Next::kEnd;
  }

 private:
  // The first message.
  absl::Status Open(Part& part) {
    H5M_RETURN_IF_ERROR(CheckVersion(request_.version()));
    H5M_ASSIGN_OR_RETURN(file_, service_.OpenToRead(request_.name()));
    H5M_ASSIGN_OR_RETURN(auto reader, file_->OpenVersion(request_.version()));
    const uint64_t size = reader->info().size_bytes;
    H5M_ASSIGN_OR_RETURN(std::vector<Extent> ranges, WantedRanges(request_, size));
    reader_ = std::move(reader);
    *part.mutable_version() = ToProto(reader_->info());
    if (!ranges.empty()) {
      request_.clear_ranges();
      ranges_.emplace(ManyRanges(*reader_, std::move(ranges)));
      return absl::OkStatus();
    }
    const uint64_t begin = std::min(request_.offset(), size);
    const uint64_t wanted = request_.length_bytes() == 0 ? size : request_.length_bytes();
    const uint64_t length = std::min(wanted, size - begin);
    ranges_.emplace(OneRange(*reader_, begin, begin + length));
    if (request_.is_metadata()) ahead_.emplace(*file_, size, request_, Extent{begin, length});
    return absl::OkStatus();
  }

  VersionsService& service_;
  v1::ReadVersionRequest request_;
  std::shared_ptr<store::File> file_;
  std::unique_ptr<store::VersionReader> reader_;              // null: not opened yet
  std::optional<std::variant<OneRange, ManyRanges>> ranges_;  // once opened
  bool is_range_sent_ = false;
  std::optional<MetadataParts<Part, v1::ReadVersionRequest>> ahead_;
};

// The same bytes for a door other than gRPC's.
class VersionBytes final : public FileBytes {
 public:
  VersionBytes(std::shared_ptr<store::File> file, std::unique_ptr<store::VersionReader> reader)
      : file_(std::move(file)), reader_(std::move(reader)) {}

  FileBytesInfo bytes_info() const override {
    const store::VersionInfo& version = reader_->info();
    return {.file_id = file_->file_id(),
            .version = version.version,
            .cut = version.cut,
            .size_bytes = version.size_bytes,
            .time = version.server_time};
  }
  absl::Status ReadBytes(uint64_t offset, absl::Span<char> out) override {
    return reader_->Read(offset, out);
  }

 private:
  const std::shared_ptr<store::File> file_;  // outlives its reader
  const std::unique_ptr<store::VersionReader> reader_;
};

absl::StatusOr<std::unique_ptr<FileBytes>> VersionsService::OpenBytes(
    const std::string& name, const rpc::VersionSpec& spec) {
  H5M_ASSIGN_OR_RETURN(auto file, OpenToRead(name));
  store::VersionNumber number = spec.number;
  if (number == 0) {
    const auto found = !spec.tag.empty() ? file->FindVersionTagged(spec.tag)
                       : spec.at         ? file->FindVersionAt(spec.at->time)
                                         : file->FindVersionBack(spec.back);
    H5M_RETURN_IF_ERROR(found.status());
    number = found->version;
  }
  H5M_ASSIGN_OR_RETURN(auto reader, file->OpenVersion(number));
  return std::make_unique<VersionBytes>(std::move(file), std::move(reader));
}

StreamReactor* VersionsService::ReadVersion(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* bytes) {
  return StartStream<v1::ReadVersionRequest>(
      environment_, *context, "ReadVersion", Right::kRead, *bytes,
      [this](v1::ReadVersionRequest request, const Principal&) {
        return std::make_unique<ReadParts>(*this, std::move(request));
      });
}

}  // namespace h5mirror::server
