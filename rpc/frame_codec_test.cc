#include "rpc/frame_codec.h"

#include <random>
#include <string>

#include "base/crc32c.h"
#include "gmock/gmock.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "gtest/gtest.h"
#include "rpc/channel.h"

namespace h5mirror::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Joined(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// `bytes` in slices of at most `step` bytes.
grpc::ByteBuffer Split(const std::string& bytes, size_t step) {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < bytes.size(); i += step) slices.emplace_back(bytes.substr(i, step));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

std::string DataOf(const WritesView& view) {
  std::string data;
  for (const std::string_view piece : view.pieces) data.append(piece);
  return data;
}

absl::StatusOr<WritesView> DecodeWrites(const std::string& bytes, size_t step = 1 << 20) {
  auto decoded = DecodeRequest(Split(bytes, step));
  if (!decoded.ok()) return decoded.status();
  if (auto* view = std::get_if<WritesView>(&*decoded)) return std::move(*view);
  return absl::NotFoundError("not a `writes`");
}

v1::MirrorFileRequest ThreeWrites() {
  v1::MirrorFileRequest request;
  v1::Writes& writes = *request.mutable_writes();
  for (const uint64_t offset : {0ull, 4096ull, (1ull << 62)}) writes.add_offset(offset);
  for (const uint32_t length : {3u, 1u, 200u}) writes.add_length(length);
  writes.set_data("abcd" + std::string(200, 'z'));
  writes.set_data_crc32c(Crc32c(writes.data()));
  return request;
}

// A field, as a writer that follows no canonical order would send it.
std::string Varint(uint64_t value) {
  std::string bytes(10, '\0');
  auto* start = reinterpret_cast<uint8_t*>(bytes.data());
  bytes.resize(google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, start) - start);
  return bytes;
}
std::string Number(uint32_t field, uint64_t value) { return Varint(field << 3) + Varint(value); }
std::string Bytes(uint32_t field, const std::string& value) {
  return Varint(field << 3 | 2) + Varint(value.size()) + value;
}
std::string AsWrites(const std::string& fields) { return Bytes(2, fields); }

std::string ErrorOf(const std::string& bytes) {
  const absl::Status status = DecodeRequest(Split(bytes, 61)).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(FrameCodecTest, GeneratedCodeReadsWhatWeEncode) {
  const v1::MirrorFileRequest expected = ThreeWrites();
  const std::vector<Extent> extents = {{0, 3}, {4096, 1}, {1ull << 62, 200}};
  const std::string& data = expected.writes().data();
  const grpc::Slice slices[] = {grpc::Slice(data.substr(0, 2)), grpc::Slice(data.substr(2))};
  v1::MirrorFileRequest parsed;
  const std::string bytes = Joined(EncodeWrites(extents, Crc32c(data), slices));
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  EXPECT_EQ(parsed.SerializeAsString(), expected.SerializeAsString());
  EXPECT_EQ(bytes, expected.SerializeAsString());
}

TEST(FrameCodecTest, EncodingReferencesTheDataInsteadOfCopyingIt) {
  const std::string data(100'000, 'x');
  const grpc::Slice slice(data.data(), data.size(), grpc::Slice::STATIC_SLICE);
  const Extent extent{7, data.size()};
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(EncodeWrites({&extent, 1}, std::nullopt, {&slice, 1}).Dump(&slices).ok());
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(static_cast<const void*>(slices[1].begin()), data.data());
}

TEST(FrameCodecTest, WeReadWhatGeneratedCodeEncodesInSlicesOfAnySize) {
  const v1::MirrorFileRequest request = ThreeWrites();
  for (const size_t step : {1, 2, 3, 7, 64, 1000}) {
    const auto view = DecodeWrites(request.SerializeAsString(), step);
    ASSERT_TRUE(view.ok()) << view.status();
    EXPECT_THAT(view->extents, ElementsAre(Extent{0, 3}, Extent{4096, 1}, Extent{1ull << 62, 200}));
    EXPECT_EQ(DataOf(*view), request.writes().data());
    EXPECT_EQ(CheckPayload(*view), absl::OkStatus());
  }
}

TEST(FrameCodecTest, OddOrderUnpackedNumbersAndUnknownFieldsAreRead) {
  const std::string group = Varint(20 << 3 | 3) + Number(1, 5) + Varint(20 << 3 | 4);
  const std::string fields = Bytes(15, "abcde") + Number(2, 2) + Number(99, 1) +
                             Bytes(2, Varint(3)) + group + Number(1, 10) + Bytes(77, "unknown") +
                             Number(1, 4096);
  const auto view = DecodeWrites(Bytes(50, "newer") + AsWrites(fields) + Number(51, 7), 3);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_THAT(view->extents, ElementsAre(Extent{10, 2}, Extent{4096, 3}));
  EXPECT_EQ(DataOf(*view), "abcde");
  EXPECT_EQ(view->crc32c, std::nullopt);
}

TEST(FrameCodecTest, SplitWritesAreMergedAndTwoRequestsRefused) {
  v1::MirrorFileRequest request;
  request.mutable_open()->set_name("a.h5");
  const std::string open = request.SerializeAsString();
  const std::string head = AsWrites(Number(1, 1) + Number(2, 2));
  const std::string tail = AsWrites(Bytes(15, "ab"));
  EXPECT_TRUE(DecodeWrites(head + tail).ok());
  for (const std::string& both : {open + head + tail, head + tail + open}) {
    const absl::Status status = DecodeRequest(Split(both, 4)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("in one message"));
  }
}

TEST(FrameCodecTest, OtherRequestsGoThroughGeneratedCode) {
  v1::MirrorFileRequest request;
  request.mutable_barrier()->set_seq(9);
  request.mutable_barrier()->set_comment("done");
  const auto decoded = DecodeRequest(EncodeRequest(request));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(std::get<v1::MirrorFileRequest>(*decoded).SerializeAsString(),
            request.SerializeAsString());
}

TEST(FrameCodecTest, EmptyMessageHoldsNoRequest) {
  const auto decoded = DecodeRequest(EncodeRequest(v1::MirrorFileRequest()));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(std::get<v1::MirrorFileRequest>(*decoded).request_case(),
            v1::MirrorFileRequest::REQUEST_NOT_SET);
  EXPECT_TRUE(absl::IsInvalidArgument(DecodeRequest(grpc::ByteBuffer()).status()));
}

TEST(FrameCodecTest, ErrorsNameTheField) {
  const std::string two = Bytes(15, "ab");
  EXPECT_THAT(ErrorOf(AsWrites(Number(1, 0) + two)), HasSubstr("writes.length: 0 lengths for 1"));
  EXPECT_THAT(ErrorOf(AsWrites(Number(1, 0) + Number(2, 3) + two)),
              HasSubstr("writes.data: 2 bytes, the lengths sum up to 3"));
  EXPECT_THAT(ErrorOf(AsWrites(Number(1, 0) + Number(2, 0) + two)),
              HasSubstr("writes.length[0]: 0 is not in"));
  EXPECT_THAT(ErrorOf(AsWrites(Number(1, INT64_MAX - 1) + Number(2, 2) + two)),
              HasSubstr("writes.offset[0]: 9223372036854775806 + 2 is beyond 2^63-1"));
  EXPECT_THAT(ErrorOf(AsWrites(Number(1, 0) + Number(2, UINT64_MAX) + two)),
              HasSubstr("writes.length[0]"));
  EXPECT_THAT(ErrorOf(AsWrites(Bytes(15, std::string(kMaxFrameBytes + 1, 'x')))),
              HasSubstr("writes.data: 1048577 bytes, more than 1048576"));
  EXPECT_THAT(ErrorOf(AsWrites(Bytes(1, std::string(1000, '\0')))), HasSubstr("too many extents"));
  EXPECT_THAT(ErrorOf(Bytes(1, "\xff")), HasSubstr("open: does not parse"));
}

TEST(FrameCodecTest, ExtentMayEndAtTheLastByteOfAFile) {
  const auto view =
      DecodeWrites(AsWrites(Number(1, INT64_MAX - 2) + Number(2, 2) + Bytes(15, "ab")));
  EXPECT_TRUE(view.ok()) << view.status();
}

TEST(FrameCodecTest, TruncatedMessagesAreRefusedWhereverTheyEnd) {
  const std::string bytes = ThreeWrites().SerializeAsString();
  for (size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_THAT(ErrorOf(bytes.substr(0, size)), HasSubstr(":")) << size;
  }
}

TEST(FrameCodecTest, DeepGroupsDoNotExhaustTheStack) {
  std::string groups;
  for (int i = 0; i < 200'000; ++i) groups += static_cast<char>(20 << 3 | 3), groups += '\x01';
  EXPECT_THAT(ErrorOf(AsWrites(groups)), HasSubstr("writes field 20"));
}

TEST(FrameCodecTest, WrongChecksumIsDataLoss) {
  v1::MirrorFileRequest request = ThreeWrites();
  request.mutable_writes()->mutable_data()->front() ^= 1;
  const auto view = DecodeWrites(request.SerializeAsString(), 50);
  ASSERT_TRUE(view.ok()) << view.status();
  const absl::Status status = CheckPayload(*view);
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("writes.data: crc32c of 204 bytes is 0x"));
}

// What is accepted must mean the same to generated code; nothing may crash.
void ExpectAgreement(const std::string& bytes, size_t step) {
  const auto decoded = DecodeRequest(Split(bytes, step));
  if (!decoded.ok()) {
    EXPECT_TRUE(absl::IsInvalidArgument(decoded.status())) << decoded.status();
    return;
  }
  v1::MirrorFileRequest parsed;
  ASSERT_TRUE(parsed.ParseFromString(bytes));
  const auto* view = std::get_if<WritesView>(&*decoded);
  ASSERT_EQ(view != nullptr, parsed.has_writes());
  if (view == nullptr) return;
  ASSERT_EQ(DataOf(*view), parsed.writes().data());
  ASSERT_EQ(view->data_bytes, parsed.writes().data().size());
  ASSERT_EQ(view->crc32c.has_value(), parsed.writes().has_data_crc32c());
  ASSERT_EQ(view->extents.size(), static_cast<size_t>(parsed.writes().offset_size()));
  for (int i = 0; i < parsed.writes().offset_size(); ++i) {
    ASSERT_EQ(view->extents[i], (Extent{parsed.writes().offset(i), parsed.writes().length(i)}));
  }
}

TEST(FrameCodecTest, MutatedMessagesAreRefusedOrMeanTheSameToGeneratedCode) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::string good = ThreeWrites().SerializeAsString() + Number(60, 1);
  for (int round = 0; round < 8'000; ++round) {
    std::string bytes = good;
    for (uint64_t i = 1 + random() % 4; i > 0; --i) {
      // Most of the structure lies in the first bytes.
      const size_t at = random() % (random() % 2 == 0 ? 40 : bytes.size());
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
        case 2:
          bytes.insert(at, 1, static_cast<char>(random()));
          break;
        default:
          bytes.erase(at, 1 + random() % 2);
      }
    }
    ASSERT_NO_FATAL_FAILURE(ExpectAgreement(bytes, 1 + random() % 80));
  }
}

}  // namespace
}  // namespace h5mirror::rpc
