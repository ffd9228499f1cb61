#include "rpc/slice_cursor.h"

#include <algorithm>

namespace h5mirror::rpc {
namespace {

std::string_view BytesOf(const grpc::Slice& slice) {
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

}  // namespace

SliceCursor::SliceCursor(absl::Span<const grpc::Slice> slices) : slices_(slices) {
  for (const grpc::Slice& slice : slices) left_ += slice.size();
  Advance(0);
}

std::string_view SliceCursor::Here() const {
  if (left_ == 0) return {};
  return BytesOf(slices_[index_]).substr(position_, left_);
}

void SliceCursor::Advance(size_t bytes) {
  position_ += bytes;
  left_ -= bytes;
  while (index_ < slices_.size() && position_ >= slices_[index_].size()) {
    ++index_;
    position_ = 0;
  }
}

bool SliceCursor::ReadVarint(uint64_t& value) {
  value = 0;
  int shift = 0;
  while (left_ > 0) {
    const std::string_view here = Here();
    for (size_t i = 0; i < here.size(); ++i) {
      const auto byte = static_cast<uint8_t>(here[i]);
      if (shift == 63 && byte > 1) return false;  // more than 64 bits
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) {
        Advance(i + 1);
        return true;
      }
      shift += 7;
    }
    Advance(here.size());
  }
  return false;
}

bool SliceCursor::ReadFixed32(uint32_t& value) {
  value = 0;
  if (left_ < 4) return false;
  for (int shift = 0; shift < 32; shift += 8) {
    value |= static_cast<uint32_t>(static_cast<uint8_t>(Here()[0])) << shift;
    Advance(1);
  }
  return true;
}

bool SliceCursor::ReadTag(Tag& tag) {
  uint64_t number = 0;
  if (!ReadVarint(number) || number > UINT32_MAX) return false;
  tag.field = static_cast<uint32_t>(number >> 3);
  tag.type = static_cast<WireType>(number & 7);
  return tag.field != 0 && (number & 7) <= 5;
}

bool SliceCursor::Skip(uint64_t bytes) {
  if (bytes > left_) return false;
  while (bytes > 0) {
    const size_t step = std::min<uint64_t>(bytes, Here().size());
    Advance(step);
    bytes -= step;
  }
  return true;
}

bool SliceCursor::SkipValue(Tag tag, int depth) {
  uint64_t number = 0;
  switch (tag.type) {
    case WireType::kVarint:
      return ReadVarint(number);
    case WireType::kFixed64:
      return Skip(8);
    case WireType::kBytes:
      return ReadVarint(number) && Skip(number);
    case WireType::kGroupStart:
      return SkipGroup(tag.field, depth - 1);
    case WireType::kGroupEnd:
      return false;
    case WireType::kFixed32:
      return Skip(4);
  }
  return false;
}

bool SliceCursor::SkipGroup(uint32_t field, int depth) {
  Tag tag;
  while (depth > 0 && ReadTag(tag)) {
    if (tag.type == WireType::kGroupEnd) return tag.field == field;
    if (!SkipValue(tag, depth)) return false;
  }
  return false;
}

bool SliceCursor::ReadPieces(uint64_t bytes, std::vector<std::string_view>& pieces) {
  if (bytes > left_) return false;
  while (bytes > 0) {
    const std::string_view piece = Here().substr(0, bytes);
    pieces.push_back(piece);
    Advance(piece.size());
    bytes -= piece.size();
  }
  return true;
}

bool SliceCursor::CountVarints(uint64_t bytes, uint64_t& count) const {
  if (bytes > left_) return false;
  count = 0;
  SliceCursor ahead = *this;
  while (bytes > 0) {
    const std::string_view here = ahead.Here().substr(0, bytes);
    // Each varint has one byte below 0x80, its last.
    count += static_cast<uint64_t>(
        std::count_if(here.begin(), here.end(), [](char c) { return (c & 0x80) == 0; }));
    ahead.Advance(here.size());
    bytes -= here.size();
  }
  return true;
}

bool SliceCursor::PushLimit(uint64_t bytes, uint64_t& after) {
  if (bytes > left_) return false;
  after = left_ - bytes;
  left_ = bytes;
  return true;
}

}  // namespace h5mirror::rpc
