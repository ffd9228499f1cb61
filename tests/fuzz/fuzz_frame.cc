// One message of a mirror's stream, in slices as the network cuts it. If the codec accepts a
// message, protobuf's own parser accepts it too, and finds the same content.
#include "rpc/frame_codec.h"
#include "tests/fuzz/fuzz_input.h"

namespace h5mirror::rpc {
namespace {

void Decode(FuzzInput& input) {
  const size_t slice_bytes = 1 + input.Take<uint16_t>();
  const std::string message(input.rest());
  std::vector<grpc::Slice> slices;
  while (!input.rest().empty()) {
    std::string_view part = input.TakeBytes(slice_bytes);
    slices.emplace_back(part.data(), part.size());
  }
  auto decoded = DecodeRequest(grpc::ByteBuffer(slices.data(), slices.size()));
  if (!decoded.ok()) return;
  v1::MirrorFileRequest parsed;
  FuzzCheck(parsed.ParseFromString(message));
  const auto* writes = std::get_if<WritesView>(&*decoded);
  if (writes == nullptr) return;
  FuzzCheck(parsed.has_writes());
  std::string bytes;
  for (std::string_view piece : writes->pieces) bytes.append(piece);
  FuzzCheck(bytes == parsed.writes().data() && bytes.size() == writes->data_bytes);
  FuzzCheck(static_cast<int>(writes->extents.size()) == parsed.writes().offset_size());
  uint64_t length_bytes = 0;
  for (size_t i = 0; i < writes->extents.size(); ++i) {
    const Extent& extent = writes->extents[i];
    FuzzCheck(extent.length > 0 && extent.end() <= INT64_MAX);
    FuzzCheck(extent.offset == parsed.writes().offset(static_cast<int>(i)));
    length_bytes += extent.length;
  }
  FuzzCheck(length_bytes == bytes.size());
  CheckPayload(*writes).IgnoreError();
}

}  // namespace
}  // namespace h5mirror::rpc

int h5mirror::LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  rpc::Decode(input);
  return 0;
}
