#include "rpc/frame_codec.h"

#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/str_format.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "google/protobuf/io/coded_stream.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/proto_buffer_writer.h"
#include "rpc/channel.h"
#include "rpc/slice_cursor.h"

namespace h5mirror::rpc {
namespace {

using google::protobuf::io::CodedOutputStream;

using Request = v1::MirrorFileRequest;
using Writes = v1::Writes;

constexpr uint32_t TagOf(uint32_t field, WireType type) {
  return field << 3 | static_cast<uint32_t>(type);
}

// All field numbers below 16: one byte each.
constexpr uint32_t kWritesTag = TagOf(Request::kWritesFieldNumber, WireType::kBytes);
constexpr uint32_t kOffsetTag = TagOf(Writes::kOffsetFieldNumber, WireType::kBytes);
constexpr uint32_t kLengthTag = TagOf(Writes::kLengthFieldNumber, WireType::kBytes);
constexpr uint32_t kCrcTag = TagOf(Writes::kDataCrc32CFieldNumber, WireType::kFixed32);
constexpr uint32_t kDataTag = TagOf(Writes::kDataFieldNumber, WireType::kBytes);
static_assert(kWritesTag < 0x80 && kOffsetTag < 0x80 && kLengthTag < 0x80 && kCrcTag < 0x80 &&
              kDataTag < 0x80);

// A tag of one byte, a length and that many bytes.
size_t FieldSize(size_t bytes) { return 1 + CodedOutputStream::VarintSize64(bytes) + bytes; }

// The sizes of an encoded `writes`, which stand before the bytes themselves.
struct WritesLayout {
  WritesLayout(absl::Span<const Extent> extents, bool has_crc, absl::Span<const grpc::Slice> data) {
    for (const Extent& extent : extents) {
      offset_bytes += CodedOutputStream::VarintSize64(extent.offset);
      length_bytes += CodedOutputStream::VarintSize64(extent.length);
    }
    for (const grpc::Slice& slice : data) data_bytes += slice.size();
    if (!extents.empty()) head_bytes += FieldSize(offset_bytes) + FieldSize(length_bytes);
    if (has_crc) head_bytes += 1 + sizeof(uint32_t);
    if (data_bytes > 0) head_bytes += FieldSize(data_bytes) - data_bytes;
  }

  size_t offset_bytes = 0;
  size_t length_bytes = 0;
  size_t data_bytes = 0;
  size_t head_bytes = 0;  // all of the message but the data
};

// Everything up to the first byte of data.
grpc::Slice EncodeHead(const WritesLayout& layout, absl::Span<const Extent> extents,
                       std::optional<uint32_t> crc32c) {
  const size_t writes_bytes = layout.head_bytes + layout.data_bytes;
  const size_t size = FieldSize(writes_bytes) - layout.data_bytes;
  grpc::Slice head(size);
  auto* out = const_cast<uint8_t*>(head.begin());
  out = CodedOutputStream::WriteVarint32ToArray(kWritesTag, out);
  out = CodedOutputStream::WriteVarint64ToArray(writes_bytes, out);
  if (!extents.empty()) {
    out = CodedOutputStream::WriteVarint32ToArray(kOffsetTag, out);
    out = CodedOutputStream::WriteVarint64ToArray(layout.offset_bytes, out);
    for (const Extent& e : extents) out = CodedOutputStream::WriteVarint64ToArray(e.offset, out);
    out = CodedOutputStream::WriteVarint32ToArray(kLengthTag, out);
    out = CodedOutputStream::WriteVarint64ToArray(layout.length_bytes, out);
    for (const Extent& e : extents) out = CodedOutputStream::WriteVarint64ToArray(e.length, out);
  }
  if (crc32c) {
    out = CodedOutputStream::WriteVarint32ToArray(kCrcTag, out);
    out = CodedOutputStream::WriteLittleEndian32ToArray(*crc32c, out);
  }
  if (layout.data_bytes > 0) {
    out = CodedOutputStream::WriteVarint32ToArray(kDataTag, out);
    out = CodedOutputStream::WriteVarint64ToArray(layout.data_bytes, out);
  }
  return head;
}

absl::Status Bad(std::string_view field, std::string_view why) {
  return absl::InvalidArgumentError(StrCat(field, ": ", why));
}

// One pass over a message: a `writes` is taken apart in place; of everything else only the
// shape is checked here.
class Decoder {
 public:
  // `view.slices` hold the message.
  explicit Decoder(WritesView& view)
      : view_(view), cursor_(view.slices), message_bytes_(cursor_.left()) {}

  // Returns the number of the field that the message holds, 0 for none. A second of another kind
  // is refused: of a `oneof` nobody sends two, and the one that lost would go unread.
  absl::StatusOr<uint32_t> Decode() {
    uint32_t last = 0;
    while (cursor_.left() > 0) {
      Tag tag;
      if (!cursor_.ReadTag(tag)) return Bad("request", "not a protobuf tag");
      if (tag.field == Request::kWritesFieldNumber && tag.type == WireType::kBytes) {
        // Two `writes` are merged, as protobuf wants.
        if (last != 0 && last != tag.field) return TwoRequests(last, tag.field);
        H5M_RETURN_IF_ERROR(DecodeWrites());
        last = tag.field;
        continue;
      }
      if (!cursor_.SkipValue(tag)) {
        return Bad(StrCat("request field ", tag.field), "the message ends inside it");
      }
      if (!IsOtherRequest(tag)) continue;
      if (last != 0 && last != tag.field) return TwoRequests(last, tag.field);
      last = tag.field;
    }
    if (last == Request::kWritesFieldNumber) H5M_RETURN_IF_ERROR(CheckWrites());
    return last;
  }

 private:
  static bool IsOtherRequest(Tag tag) {
    return tag.type == WireType::kBytes && tag.field >= Request::kOpenFieldNumber &&
           tag.field <= Request::kKeepAliveFieldNumber;
  }

  static absl::Status TwoRequests(uint32_t one, uint32_t other) {
    return Bad("request", StrCat("fields ", one, " and ", other, " in one message"));
  }

  // Narrows the cursor to the length-delimited value that comes next.
  bool Enter(uint64_t& after) {
    uint64_t bytes = 0;
    return cursor_.ReadVarint(bytes) && cursor_.PushLimit(bytes, after);
  }

  absl::Status DecodeWrites() {
    uint64_t after = 0;
    if (!Enter(after)) return Bad("writes", "the message ends inside it");
    while (cursor_.left() > 0) {
      Tag tag;
      if (!cursor_.ReadTag(tag)) return Bad("writes", "not a protobuf tag");
      H5M_RETURN_IF_ERROR(DecodeField(tag));
    }
    cursor_.PopLimit(after);
    return absl::OkStatus();
  }

  absl::Status DecodeField(Tag tag) {
    if (tag.field == Writes::kOffsetFieldNumber && IsNumbers(tag)) {
      return DecodeNumbers(tag, "writes.offset", [this](uint64_t number) {
        if (offset_count_ == view_.extents.size()) view_.extents.emplace_back();
        view_.extents[offset_count_++].offset = number;
      });
    }
    if (tag.field == Writes::kLengthFieldNumber && IsNumbers(tag)) {
      return DecodeNumbers(tag, "writes.length", [this](uint64_t number) {
        if (length_count_ == view_.extents.size()) view_.extents.emplace_back();
        view_.extents[length_count_++].length = number;
      });
    }
    if (tag.field == Writes::kDataCrc32CFieldNumber && tag.type == WireType::kFixed32) {
      if (cursor_.ReadFixed32(view_.crc32c.emplace())) return absl::OkStatus();
      return Bad("writes.data_crc32c", "the message ends inside it");
    }
    if (tag.field == Writes::kDataFieldNumber && tag.type == WireType::kBytes) return DecodeData();
    if (cursor_.SkipValue(tag)) return absl::OkStatus();
    return Bad(StrCat("writes field ", tag.field), "the message ends inside it");
  }

  static bool IsNumbers(Tag tag) {
    return tag.type == WireType::kBytes || tag.type == WireType::kVarint;
  }

  // Packed or not, as the tag says.
  template <typename Append>
  absl::Status DecodeNumbers(Tag tag, std::string_view field, Append append) {
    uint64_t number = 0;
    if (tag.type == WireType::kVarint) {
      if (!cursor_.ReadVarint(number)) return Bad(field, "not a varint of 64 bits");
      append(number);
      return CheckCount(field, view_.extents.size());
    }
    uint64_t after = 0;
    uint64_t count = 0;
    if (!Enter(after) || !cursor_.CountVarints(cursor_.left(), count)) {
      return Bad(field, "the message ends inside it");
    }
    H5M_RETURN_IF_ERROR(CheckCount(field, count));
    if (view_.extents.capacity() < count) view_.extents.reserve(count);
    while (cursor_.left() > 0) {
      if (!cursor_.ReadVarint(number)) return Bad(field, "not a varint of 64 bits");
      append(number);
    }
    cursor_.PopLimit(after);
    return absl::OkStatus();
  }

  // An extent takes at least one byte each of offset, length and data.
  absl::Status CheckCount(std::string_view field, uint64_t count) const {
    if (count <= message_bytes_ / 3) return absl::OkStatus();
    return Bad(field,
               StrCat("too many extents: ", count, " in a message of ", message_bytes_, " bytes"));
  }

  absl::Status DecodeData() {
    uint64_t bytes = 0;
    if (!cursor_.ReadVarint(bytes)) return Bad("writes.data", "the message ends inside it");
    if (bytes > kMaxFrameBytes) {
      return Bad("writes.data", StrCat(bytes, " bytes, more than ", kMaxFrameBytes));
    }
    view_.pieces.clear();  // The last one wins.
    view_.data_bytes = bytes;
    if (cursor_.ReadPieces(bytes, view_.pieces)) return absl::OkStatus();
    return Bad("writes.data", "the message ends inside it");
  }

  absl::Status CheckWrites() const {
    if (offset_count_ != length_count_) {
      return Bad("writes.length",
                 StrCat(length_count_, " lengths for ", offset_count_, " offsets"));
    }
    constexpr uint64_t kEndMax = std::numeric_limits<int64_t>::max();
    uint64_t sum = 0;
    for (size_t i = 0; i < view_.extents.size(); ++i) {
      const Extent& extent = view_.extents[i];
      // Also keeps the sum from overflowing.
      if (extent.length == 0 || extent.length > kMaxFrameBytes) {
        return Bad(StrCat("writes.length[", i, "]"),
                   StrCat(extent.length, " is not in 1..", kMaxFrameBytes));
      }
      if (extent.offset > kEndMax - extent.length) {
        return Bad(StrCat("writes.offset[", i, "]"),
                   StrCat(extent.offset, " + ", extent.length, " is beyond 2^63-1"));
      }
      sum += extent.length;
    }
    if (sum == view_.data_bytes) return absl::OkStatus();
    return Bad("writes.data", StrCat(view_.data_bytes, " bytes, the lengths sum up to ", sum));
  }

  WritesView& view_;
  SliceCursor cursor_;
  const uint64_t message_bytes_;
  size_t offset_count_ = 0;
  size_t length_count_ = 0;
};

// The name of a field of MirrorFileRequest, for messages.
std::string_view RequestName(uint32_t field) {
  const auto* descriptor = Request::descriptor()->FindFieldByNumber(static_cast<int>(field));
  return descriptor == nullptr ? "request" : std::string_view(descriptor->name());
}

absl::StatusOr<DecodedRequest> ParseGenerated(const grpc::ByteBuffer& message, uint32_t field) {
  grpc::ByteBuffer readable(message);  // The reader wants a mutable one; shares the slices.
  grpc::ProtoBufferReader reader(&readable);
  Request request;
  if (!reader.status().ok() || !request.ParseFromZeroCopyStream(&reader)) {
    return Bad(RequestName(field), "does not parse as h5mirror.v1.MirrorFileRequest");
  }
  return DecodedRequest(std::move(request));
}

}  // namespace

grpc::ByteBuffer EncodeWrites(absl::Span<const Extent> extents, std::optional<uint32_t> crc32c,
                              absl::Span<const grpc::Slice> data) {
  const WritesLayout layout(extents, crc32c.has_value(), data);
  std::vector<grpc::Slice> slices;
  slices.reserve(1 + data.size());
  slices.push_back(EncodeHead(layout, extents, crc32c));
  slices.insert(slices.end(), data.begin(), data.end());
  return grpc::ByteBuffer(slices.data(), slices.size());
}

grpc::ByteBuffer EncodeRequest(const v1::MirrorFileRequest& request) {
  std::string bytes;
  request.SerializeToString(&bytes);
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

absl::StatusOr<DecodedRequest> DecodeRequest(const grpc::ByteBuffer& message) {
  WritesView view;
  if (!message.Valid() || !message.Dump(&view.slices).ok()) {
    return Bad("request", "no message, or one that does not decompress");
  }
  absl::StatusOr<uint32_t> field = Decoder(view).Decode();
  if (!field.ok()) return std::move(field).status();
  if (*field == Request::kWritesFieldNumber) return DecodedRequest(std::move(view));
  return ParseGenerated(message, *field);
}

absl::Status CheckPayload(const WritesView& writes) {
  if (!writes.crc32c) return absl::OkStatus();
  uint32_t crc = 0;
  for (const std::string_view piece : writes.pieces) crc = Crc32cExtend(crc, piece);
  if (crc == *writes.crc32c) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrFormat("writes.data: crc32c of %d bytes is %#010x, not %#010x", writes.data_bytes,
                      crc, *writes.crc32c));
}

}  // namespace h5mirror::rpc
