#include "sync/digest_stream.h"

#include "base/status_macros.h"

namespace h5mirror::tools {

absl::StatusOr<v1::Version> StreamDigests(rpc::Client& client, const DigestQuery& query,
                                          uint64_t* wire_bytes, DigestSink sink) {
  v1::DigestFileRequest request;
  request.set_name(query.name);
  request.set_version(query.version);
  request.set_block_size_bytes(static_cast<uint32_t>(query.block_size_bytes));
  for (const Extent range : query.ranges) {
    v1::ByteRange& wanted = *request.add_ranges();
    wanted.set_offset(range.offset);
    wanted.set_length_bytes(range.length);
  }
  *wire_bytes += request.ByteSizeLong();
  rpc::DigestBlocks blocks(request, sink);
  H5M_RETURN_IF_ERROR(client.DigestFile(request, [&](const v1::DigestFileResponse& message) {
    *wire_bytes += message.ByteSizeLong();
    return blocks.Take(message);
  }));
  return blocks.Finish();
}

}  // namespace h5mirror::tools
