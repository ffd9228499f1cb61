#include "rpc/cut_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::rpc {
namespace {

using testing::HasSubstr;

constexpr uint64_t kSize = 2 * kMapBlockBytes + 100;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

OwnedFd Memory(const std::string& bytes, int seals = kSeals) {
  OwnedFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(write(fd.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

// Pages 1 and 3 of block 0, and the last block, of 100 bytes.
struct Parts {
  CutMapHeader header{{}, kSize, 2, 1, 1};
  CutMapEntry entries[2] = {{0, 0, 0b1010, 0, 0}, {2, 2 * kMapPageBytes, 1, 0, 0}};
  std::string pages =
      std::string(kMapPageBytes, '1') + std::string(kMapPageBytes, '3') + std::string(100, 'e');

  Parts() { std::memcpy(header.magic, kMapMagic, sizeof(header.magic)); }
  std::string index() const {
    return std::string(reinterpret_cast<const char*>(&header), sizeof(header)) +
           std::string(reinterpret_cast<const char*>(entries), sizeof(entries));
  }
  absl::StatusOr<std::unique_ptr<CutMap>> Map(int seals = kSeals) const {
    std::vector<OwnedFd> memories;
    memories.push_back(Memory(index(), seals));
    memories.push_back(Memory(pages));
    return CutMap::Map(memories, kSize, OwnedFd());
  }
};

std::string Read(const CutMap& map, uint64_t offset, uint64_t length) {
  std::string out(length, '?');
  return out.substr(0, map.Read(offset, absl::MakeSpan(out)));
}

TEST(CutMapTest, ReadsWhatIsThereAndNothingElse) {
  const auto map = Parts().Map();
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_TRUE((*map)->has_all());
  EXPECT_EQ(Read(**map, kMapPageBytes, kMapPageBytes), std::string(kMapPageBytes, '1'));
  EXPECT_EQ(Read(**map, 3 * kMapPageBytes + 5, 7), "3333333");
  EXPECT_EQ(Read(**map, 2 * kMapBlockBytes + 98, 2), "ee");
  EXPECT_EQ(Read(**map, kMapPageBytes - 1, 2), "") << "the page before it is not known";
  EXPECT_EQ(Read(**map, 2 * kMapPageBytes - 1, 2), "1") << "nor the one behind it";
  EXPECT_EQ(Read(**map, 2 * kMapBlockBytes + 98, 3), "ee") << "beyond the end";
  EXPECT_EQ(Read(**map, kMapBlockBytes, 1), "");
  EXPECT_EQ(Read(**map, 9 * kMapBlockBytes, 1), "");
}

TEST(CutMapTest, TakesNothingThatItsMakerCouldChange) {
  for (const int seals : {0, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_GROW | F_SEAL_WRITE}) {
    EXPECT_THAT(Parts().Map(seals).status().message(), HasSubstr("not sealed"));
  }
}

TEST(CutMapTest, TakesNoIndexThatLeadsOutOfIt) {
  const auto refused = [](const Parts& parts, const char* why) {
    const auto map = parts.Map();
    EXPECT_EQ(map.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(map.status().message(), HasSubstr(why));
  };
  Parts parts;
  parts.header.magic[7] = '9';
  refused(parts, "another kind");
  parts = Parts();
  parts.header.size_bytes = kSize - 1;
  refused(parts, "not 131172");
  parts = Parts();
  parts.header.entry_count = 3;
  refused(parts, "does not fit");
  parts = Parts();
  parts.header.part_count = 2;
  refused(parts, "does not fit");
  parts = Parts();
  parts.entries[1].offset = UINT64_MAX - 10;
  refused(parts, "leads out");
  parts = Parts();
  parts.entries[0].known = 0xffff;
  refused(parts, "leads out");
  parts = Parts();
  parts.entries[1].part = 1;
  refused(parts, "no sense");
  parts = Parts();
  parts.entries[1].block = 3;
  refused(parts, "no sense");
  parts = Parts();
  parts.entries[0].block = 2;
  refused(parts, "no sense");
  parts = Parts();
  parts.pages = "x";
  refused(parts, "leads out");
  EXPECT_FALSE(CutMap::Map({}, kSize, OwnedFd()).ok());
}

TEST(CutMapQuestionTest, IsReadAsItWasWritten) {
  const CutMapQuestion question{"node7:7447", "beamline/scan.h5", std::string(16, '\7'), 12, 3, 77};
  const std::string bytes = EncodeQuestion(question);
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string_view part(bytes.data(), length);
    EXPECT_THAT(QuestionBytes(part), testing::AnyOf(0, bytes.size()));
    EXPECT_FALSE(DecodeQuestion(part));
  }
  const auto read = DecodeQuestion(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->target, question.target);
  EXPECT_EQ(read->name, question.name);
  EXPECT_EQ(read->file_id, question.file_id);
  EXPECT_EQ(read->cut, 12);
  EXPECT_EQ(read->version, 3);
  EXPECT_EQ(read->version_time_ns, 77);
  EXPECT_FALSE(QuestionBytes(std::string(100, 'x'))) << "something else";
  EXPECT_FALSE(QuestionBytes(EncodeQuestion({"t", std::string(1 << 20, 'n'), "", 0, 0})));
}

TEST(CutMapQuestionTest, AnOpenNamesItsReader) {
  CutMapQuestion question{"node7:7447", "scan.h5", ""};
  question.kind = CutMapQuestion::Kind::kOpen;
  question.reader_id = std::string(16, 'r');
  const auto read = DecodeQuestion(EncodeQuestion(question));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, CutMapQuestion::Kind::kOpen);
  EXPECT_EQ(read->name, "scan.h5");
  EXPECT_EQ(read->reader_id, question.reader_id);
  EXPECT_EQ(read->file_id, "");
}

TEST(CutMapTest, WhereNobodyListensThatIsSaidAtOnce) {
  const auto map = CutMap::Ask("/nonexistent/agent.sock.maps", {}, kSize, absl::InfinitePast());
  EXPECT_EQ(map.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace h5mirror::rpc
