#include "onion_store/file/cuts/file_layers.h"

#include <algorithm>
#include <cstring>

#include "base/status_macros.h"

namespace h5mirror::store {

absl::Status ReadThrough(const std::vector<std::shared_ptr<CutLayer>>& layers, EnvFile& head,
                         uint64_t size_bytes, uint64_t offset, absl::Span<char> out) {
  const uint64_t within =
      offset >= size_bytes ? 0 : std::min<uint64_t>(out.size(), size_bytes - offset);
  std::memset(out.data() + within, 0, out.size() - within);
  if (within == 0) return absl::OkStatus();
  std::vector<Extent> wanted{{offset, within}};
  auto place = [&](Extent part) { return out.subspan(part.offset - offset, part.length); };
  for (auto layer = layers.rbegin(); layer != layers.rend() && !wanted.empty(); ++layer) {
    std::vector<Piece> pieces;
    H5M_RETURN_IF_ERROR((*layer)->data.Resolve(&wanted, &pieces));
    for (const Piece& piece : pieces) {
      if (piece.source == Piece::Source::kStage) {
        H5M_RETURN_IF_ERROR((*layer)->Read(piece.location, place(piece.extent)));
      } else if (piece.source == Piece::Source::kHead) {
        H5M_RETURN_IF_ERROR(ReadOrZeros(head, piece.extent.offset, place(piece.extent)));
      } else {
        std::memset(place(piece.extent).data(), 0, piece.extent.length);
      }
    }
  }
  for (const Extent& rest : wanted) {
    H5M_RETURN_IF_ERROR(ReadOrZeros(head, rest.offset, place(rest)));
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::store
