#include "server/http/file_stream.h"

#include <algorithm>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {

uint64_t FileStream::size_bytes() const {
  uint64_t size = 0;
  for (const Piece& piece : pieces_) size += piece.text.size() + piece.range.length;
  return size;
}

absl::StatusOr<std::optional<HttpPart>> FileStream::Next(uint64_t max_bytes) {
  HttpPart part;
  while (at_ < pieces_.size() && part.size() < max_bytes) {
    Piece& piece = pieces_[at_];
    part.insert(part.end(), piece.text.begin(),
                piece.text.end());  // Short: a part is hardly longer than `max_bytes` by it.
    piece.text.clear();
    const uint64_t room = max_bytes - std::min<uint64_t>(max_bytes, part.size());
    const uint64_t length = std::min(room, piece.range.length);
    if (length > 0) {
      const size_t begin = part.size();
      part.resize(begin + length);
      H5M_RETURN_IF_ERROR(
          bytes_->ReadBytes(piece.range.offset, absl::MakeSpan(part).subspan(begin)));
      piece.range = {piece.range.offset + length, piece.range.length - length};
    }
    if (piece.range.length == 0) ++at_;
  }
  if (part.empty()) return std::optional<HttpPart>();
  return std::optional<HttpPart>(std::move(part));
}

std::vector<FileStream::Piece> MultipartPieces(const std::vector<Extent>& ranges, uint64_t size,
                                               const std::string& boundary) {
  std::vector<FileStream::Piece> pieces;
  for (const Extent& range : ranges) {
    pieces.push_back(
        {StrCat(pieces.empty() ? "" : "\r\n", "--", boundary, "\r\nContent-Type: ", kFileType,
                "\r\nContent-Range: ", ContentRange(range, size), "\r\n\r\n"),
         range});
  }
  pieces.push_back({StrCat("\r\n--", boundary, "--\r\n"), {}});
  return pieces;
}

std::string ContentRange(const Extent& range, uint64_t size) {
  return StrCat("bytes ", range.offset, "-", range.offset + range.length - 1, "/", size);
}

}  // namespace h5mirror::server
