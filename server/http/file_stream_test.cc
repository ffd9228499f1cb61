#include "server/http/file_stream.h"

#include <gtest/gtest.h>

#include <string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace h5mirror::server {
namespace {

class TextBytes final : public FileBytes {
 public:
  explicit TextBytes(std::string text) : text_(std::move(text)) {}
  FileBytesInfo bytes_info() const override { return {.size_bytes = text_.size()}; }
  absl::Status ReadBytes(uint64_t offset, absl::Span<char> out) override {
    if (offset + out.size() > text_.size()) return absl::DataLossError("beyond the end");
    memcpy(out.data(), text_.data() + offset, out.size());
    return absl::OkStatus();
  }

 private:
  const std::string text_;
};

std::string ReadAll(FileStream& stream, uint64_t max_bytes) {
  std::string all;
  for (;;) {
    auto part = stream.Next(max_bytes);
    EXPECT_TRUE(part.ok()) << part.status();
    if (!part.ok() || !part->has_value()) return all;
    EXPECT_FALSE((*part)->empty());
    all.append((*part)->begin(), (*part)->end());
  }
}

TEST(FileStreamTest, GivesTheRangeInPartsOfTheSizeThatIsAskedFor) {
  FileStream stream(std::make_unique<TextBytes>("0123456789"), {{"", {2, 7}}});
  EXPECT_EQ(stream.size_bytes(), 7u);
  EXPECT_EQ(**stream.Next(3), PartOf("234"));
  EXPECT_EQ(ReadAll(stream, 3), "5678");
}

TEST(FileStreamTest, AMultipartBodyHasTheSizeThatItSays) {
  const std::vector<Extent> ranges = {{1, 2}, {8, 1}};
  for (const uint64_t max_bytes : {1, 7, 1000}) {
    FileStream stream(std::make_unique<TextBytes>("0123456789"), MultipartPieces(ranges, 10, "B"));
    const uint64_t size = stream.size_bytes();
    const std::string body = ReadAll(stream, max_bytes);
    EXPECT_EQ(body.size(), size);
    EXPECT_EQ(body, StrCat("--B\r\nContent-Type: application/x-hdf5\r\nContent-Range: bytes "
                           "1-2/10\r\n\r\n12\r\n--B\r\nContent-Type: application/x-hdf5\r\n"
                           "Content-Range: bytes 8-8/10\r\n\r\n8\r\n--B--\r\n"));
  }
}

TEST(FileStreamTest, AnErrorOfTheFileEndsIt) {
  FileStream stream(std::make_unique<TextBytes>("0123"), {{"", {2, 7}}});
  const auto part = stream.Next(100);
  EXPECT_EQ(part.status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace h5mirror::server
