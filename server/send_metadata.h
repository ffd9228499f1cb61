// Sends the metadata that a reader asked for behind a range: see `metadata_length_bytes` of
// ReadSnapshotRequest and ReadVersionRequest.
#ifndef H5MIRROR_SERVER_SEND_METADATA_H_
#define H5MIRROR_SERVER_SEND_METADATA_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/crc32c.h"
#include "grpcpp/support/sync_stream.h"
#include "onion_store/file.h"
#include "server/metadata_ahead.h"

namespace h5mirror::server {

// `request` and `Response` are ReadSnapshot's or ReadVersion's; `read` was sent, of a version or
// cut of `size_bytes` that `read_at` reads. The range is there whatever becomes of what is sent
// behind it: at a block that cannot be read this ends, as if no more were known, and who wants
// that block asks for it and is told why.
template <typename Response, typename Request>
absl::Status SendMetadataBlocks(
    store::File& file, uint64_t size_bytes, const Request& request, Extent read,
    absl::FunctionRef<absl::Status(uint64_t offset, absl::Span<char> out)> read_at,
    grpc::ServerWriter<Response>& writer) {
  constexpr uint64_t kPartBytes = 8 * kMetadataBlockBytes;
  if (request.is_metadata()) {
    const Extent known{read.offset, std::min(read.length, kMetadataBlockBytes)};
    file.metadata().Add({&known, 1});
  }
  if (request.metadata_length_bytes() == 0) return absl::OkStatus();
  const MetadataBlocks blocks = FindMetadataBlocks(
      file.metadata(), size_bytes, request.metadata_from(), request.metadata_length_bytes(), read);
  Response part;
  part.set_ahead(true);
  for (const Extent& run : blocks.runs) {
    for (uint64_t at = run.offset; at < run.end();) {
      std::string& bytes = *part.mutable_data();
      bytes.resize(std::min(kPartBytes, run.end() - at));
      if (!read_at(at, absl::MakeSpan(bytes)).ok()) return absl::OkStatus();
      part.set_offset(at);
      part.set_data_crc32c(Crc32c(bytes));
      if (!writer.Write(part)) return absl::CancelledError("the caller has gone");
      at += bytes.size();
    }
  }
  part.clear_data();
  part.set_data_crc32c(Crc32c(""));
  part.set_metadata_next(blocks.next);
  if (!writer.Write(part)) return absl::CancelledError("the caller has gone");
  return absl::OkStatus();
}

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SEND_METADATA_H_
