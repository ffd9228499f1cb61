// Sends the metadata that a reader asked for behind a range: see `metadata_length_bytes` of
// ReadSnapshotRequest and ReadVersionRequest.
#ifndef H5MIRROR_SERVER_CALLS_SEND_METADATA_H_
#define H5MIRROR_SERVER_CALLS_SEND_METADATA_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/crc32c.h"
#include "h5mirror/v1/types.pb.h"
#include "onion_store/file.h"
#include "server/calls/metadata_ahead.h"

namespace h5mirror::server {

// All bytes of some ranges, one after the other.
using RangesAt =
    absl::FunctionRef<absl::Status(absl::Span<const Extent> ranges, absl::Span<char> out)>;

// Splits `runs`: as many as fit into a message, and the rest.
template <typename Response>
void TakePieces(std::vector<Extent>* runs, size_t* next, bool as_pieces, uint64_t room,
                std::vector<Extent>* pieces, Response* part) {
  pieces->clear();
  part->clear_pieces();
  while (*next < runs->size() && room > 0 && (as_pieces || pieces->empty())) {
    Extent& run = (*runs)[*next];
    const uint64_t length = std::min(room, run.length);
    pieces->push_back({run.offset, length});
    room -= length;
    run = {run.offset + length, run.length - length};
    if (run.length == 0) ++*next;
    if (!as_pieces) continue;
    v1::ByteRange& piece = *part->add_pieces();
    piece.set_offset(pieces->back().offset);
    piece.set_length_bytes(length);
  }
}

// The messages of one call. `Request` and `Response` are ReadSnapshot's or ReadVersion's. The range
// `read`, of a version or cut of `size_bytes`, was sent before. A block that cannot be read is no
// error of the call: the metadata ends there, and a reader that asks for that block gets the error.
template <typename Response, typename Request>
class MetadataParts {
 public:
  MetadataParts(store::File& file, uint64_t size_bytes, const Request& request, Extent read)
      : as_pages_(request.metadata_pages()), is_over_(request.metadata_length_bytes() == 0) {
    if (request.is_metadata()) {
      const Extent known{read.offset, std::min(read.length, kMetadataBlockBytes)};
      file.metadata().Add({&known, 1});
    }
    if (is_over_) return;
    found_ = (as_pages_ ? FindMetadataPages : FindMetadataBlocks)(
        file.metadata(), size_bytes, request.metadata_from(), request.metadata_length_bytes(),
        read);
  }

  // Fills the empty `part` with whole blocks, at most `part_bytes`. False: there are no more.
  // `read_at` reads the version or cut.
  bool Next(RangesAt read_at, uint64_t part_bytes, Response& part) {
    if (is_over_) return false;
    part.set_ahead(true);
    if (next_ == found_.runs.size()) {
      is_over_ = true;
      part.clear_pieces();
      part.clear_data();
      part.set_data_crc32c(Crc32c(""));
      part.set_metadata_next(found_.next);
      return true;
    }
    TakePieces(&found_.runs, &next_, as_pages_, part_bytes, &pieces_, &part);
    std::string& bytes = *part.mutable_data();
    bytes.resize(TotalBytes(pieces_));
    if (!read_at(pieces_, absl::MakeSpan(bytes)).ok()) return false;
    part.set_offset(pieces_.front().offset);
    part.set_data_crc32c(Crc32c(bytes));
    return true;
  }

 private:
  const bool as_pages_;
  bool is_over_;
  MetadataBlocks found_;
  size_t next_ = 0;
  std::vector<Extent> pieces_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_SEND_METADATA_H_
