// Reads protobuf's wire format (https://protobuf.dev/programming-guides/encoding) from bytes
// that lie in several gRPC slices, without joining them.
#ifndef H5MIRROR_RPC_SLICE_CURSOR_H_
#define H5MIRROR_RPC_SLICE_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "grpcpp/support/slice.h"

namespace h5mirror::rpc {

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kBytes = 2,
  kGroupStart = 3,
  kGroupEnd = 4,
  kFixed32 = 5,
};

struct Tag {
  uint32_t field = 0;
  WireType type = WireType::kVarint;
};

// Borrows the slices. A read returns false if the bytes up to the limit do not hold the value; the
// position is undefined then.
class SliceCursor {
 public:
  explicit SliceCursor(absl::Span<const grpc::Slice> slices);

  // Bytes up to the limit.
  uint64_t left() const { return left_; }

  bool ReadVarint(uint64_t& value);
  bool ReadFixed32(uint32_t& value);
  // False for the field number 0 and wire types that do not exist.
  bool ReadTag(Tag& tag);
  bool Skip(uint64_t bytes);
  // Skips the value that follows `tag`, whole groups included.
  bool SkipValue(Tag tag) { return SkipValue(tag, kGroupDepthMax); }
  // Appends the next `bytes` bytes, in place, to `pieces`.
  bool ReadPieces(uint64_t bytes, std::vector<std::string_view>& pieces);
  // The count of varints in the next `bytes` bytes; does not move.
  bool CountVarints(uint64_t bytes, uint64_t& count) const;

  // Lets reads see only the next `bytes` bytes, until PopLimit() with the returned value.
  bool PushLimit(uint64_t bytes, uint64_t& after);
  void PopLimit(uint64_t after) { left_ += after; }

 private:
  static constexpr int kGroupDepthMax = 100;  // as protobuf's own parsers

  bool SkipValue(Tag tag, int depth);
  bool SkipGroup(uint32_t field, int depth);
  // The bytes up to the end of the slice or the limit; empty at the limit only.
  std::string_view Here() const;
  // `bytes` <= Here().size()
  void Advance(size_t bytes);

  absl::Span<const grpc::Slice> slices_;
  size_t index_ = 0;  // of the slice that the next byte lies in
  size_t position_ = 0;
  uint64_t left_ = 0;
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_SLICE_CURSOR_H_
