// The bodies of answers that are sent in parts: bytes of a file, and a text that is long.
#ifndef H5MIRROR_SERVER_HTTP_FILE_STREAM_H_
#define H5MIRROR_SERVER_HTTP_FILE_STREAM_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/extent.h"
#include "server/calls/file_bytes.h"
#include "server/http/message.h"

namespace h5mirror::server {

// Thread-compatible.
class FileStream final : public HttpStream {
 public:
  // A text, and the bytes of the file that follow it.
  struct Piece {
    std::string text = {};
    Extent range = {};
  };
  FileStream(std::unique_ptr<FileBytes> bytes, std::vector<Piece> pieces)
      : bytes_(std::move(bytes)), pieces_(std::move(pieces)) {}

  uint64_t size_bytes() const;
  absl::StatusOr<std::optional<HttpPart>> Next(uint64_t max_bytes) override;

 private:
  const std::unique_ptr<FileBytes> bytes_;
  std::vector<Piece> pieces_;  // the rest of them
  size_t at_ = 0;
};

// Thread-compatible.
class TextStream final : public HttpStream {
 public:
  explicit TextStream(std::string text) : text_(std::move(text)) {}
  absl::StatusOr<std::optional<HttpPart>> Next(uint64_t max_bytes) override {
    if (at_ == text_.size()) return std::optional<HttpPart>();
    HttpPart part = PartOf(std::string_view(text_).substr(at_, max_bytes));
    at_ += part.size();
    return std::optional<HttpPart>(std::move(part));
  }

 private:
  const std::string text_;
  size_t at_ = 0;
};

// The pieces of a multipart/byteranges body (RFC 9110, 14.6). `ranges` are of a file of `size`.
std::vector<FileStream::Piece> MultipartPieces(const std::vector<Extent>& ranges, uint64_t size,
                                               const std::string& boundary);

// "bytes 0-9/100".
std::string ContentRange(const Extent& range, uint64_t size);

inline constexpr char kFileType[] = "application/x-hdf5";

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_FILE_STREAM_H_
