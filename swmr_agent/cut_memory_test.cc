#include "swmr_agent/cut_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/cut_map.h"
#include "swmr_agent/cut_image.h"
#include "swmr_agent/testing/fake_ranges.h"

namespace h5mirror::agent {
namespace {

constexpr uint64_t kSize = 20 * kBlockBytes + 1234;

class CutMemoryTest : public testing::Test {
 protected:
  // The whole cut is metadata, and known.
  std::shared_ptr<CutImage> Whole() {
    auto image = std::make_shared<CutImage>(pool_, kSize, ranges_.Reader());
    image->Learn(0, ranges_.bytes);
    return image;
  }
  static std::unique_ptr<rpc::CutMap> Map(const CutMemory& memory) {
    std::vector<OwnedFd> fds;
    for (const int fd : memory.descriptors()) fds.emplace_back(dup(fd));
    auto map = rpc::CutMap::Map(fds, kSize, OwnedFd());
    EXPECT_TRUE(map.ok()) << map.status();
    return map.ok() ? *std::move(map) : nullptr;
  }
  static std::string ReadAll(const rpc::CutMap& map) {
    std::string bytes(kSize, '?');
    EXPECT_TRUE(map.Read(0, absl::MakeSpan(bytes)));
    return bytes;
  }

  const std::shared_ptr<BlockPool> pool_ = std::make_shared<BlockPool>(64 << 20);
  FakeRanges ranges_{RandomBytes(kSize, 1)};
};

TEST_F(CutMemoryTest, ReadersMapWhatIsKnown) {
  const auto memory = Whole()->Memory();
  ASSERT_TRUE(memory.ok()) << memory.status();
  EXPECT_TRUE(ReadAll(*Map(**memory)) == ranges_.bytes);
  EXPECT_TRUE((*memory)->has_all());
}

TEST_F(CutMemoryTest, PagesOfWhichNothingIsKnownAreNotThere) {
  CutImage image(pool_, kSize, ranges_.Reader());
  EXPECT_EQ(image.Memory().status().code(), absl::StatusCode::kNotFound);
  image.Learn(3 * kBlockBytes + kPageBytes,
              ranges_.bytes.substr(3 * kBlockBytes + kPageBytes, kPageBytes));
  const auto memory = image.Memory();
  ASSERT_TRUE(memory.ok()) << memory.status();
  const auto map = Map(**memory);
  std::string page(kPageBytes, '?');
  EXPECT_EQ(map->Read(3 * kBlockBytes + kPageBytes, absl::MakeSpan(page)), kPageBytes);
  EXPECT_EQ(page, ranges_.bytes.substr(3 * kBlockBytes + kPageBytes, kPageBytes));
  EXPECT_EQ(map->Read(3 * kBlockBytes, absl::MakeSpan(page)), 0);
}

TEST_F(CutMemoryTest, NobodyCanChangeIt) {
  const auto memory = Whole()->Memory();
  ASSERT_TRUE(memory.ok()) << memory.status();
  for (const int fd : (*memory)->descriptors()) {
    EXPECT_EQ(pwrite(fd, "x", 1, 0), -1);
    EXPECT_EQ(ftruncate(fd, 0), -1);
    EXPECT_EQ(mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    void* const read = mmap(nullptr, 1, PROT_READ, MAP_SHARED, fd, 0);
    ASSERT_NE(read, MAP_FAILED);
    EXPECT_EQ(mprotect(read, 1, PROT_READ | PROT_WRITE), -1);
    munmap(read, 1);
  }
}

TEST_F(CutMemoryTest, TheNextCutSharesWhatDidNotChangeAndTheOneBeforeStays) {
  auto image = Whole();
  auto memory = image->Memory();
  ASSERT_TRUE(memory.ok()) << memory.status();
  const auto first = Map(**memory);
  const std::string before = ranges_.bytes;
  const uint64_t whole_bytes = pool_->count().reserved_bytes;
  for (int cut = 0; cut < 40; ++cut) {
    const uint64_t page = (cut % 20) * kBlockBytes + kPageBytes;
    ranges_.bytes.replace(page, kPageBytes, std::string(kPageBytes, static_cast<char>('a' + cut)));
    image = image->Next(kSize, ranges_.Reader(), {{{page, kPageBytes}}});
    image->Learn(page, ranges_.bytes.substr(page, kPageBytes));
    memory = image->Memory();
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_LE((*memory)->descriptors().size(), rpc::kMapDescriptorsMax);
    EXPECT_TRUE(ReadAll(*Map(**memory)) == ranges_.bytes) << cut;
    if (cut == 0) {
      EXPECT_LT(pool_->count().reserved_bytes, whole_bytes + 2 * kBlockBytes);
    }
  }
  EXPECT_TRUE(ReadAll(*first) == before);
}

TEST_F(CutMemoryTest, MoreThatIsKnownLaterIsForThoseWhoComeLater) {
  CutImage image(pool_, kSize, ranges_.Reader());
  image.Learn(0, ranges_.bytes.substr(0, kBlockBytes));
  const auto first = image.Memory();
  EXPECT_EQ(image.Memory().value(), first.value()) << "it is shared";
  image.Learn(kBlockBytes, ranges_.bytes.substr(kBlockBytes));
  const auto second = image.Memory();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_TRUE(ReadAll(*Map(**second)) == ranges_.bytes);
}

TEST_F(CutMemoryTest, ItIsOfThePoolAndGivenBack) {
  const auto small = std::make_shared<BlockPool>(30 * kBlockBytes);
  {
    CutImage image(small, kSize, ranges_.Reader());
    image.Learn(0, ranges_.bytes);
    EXPECT_EQ(image.Memory().status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(small->count().reserved_bytes, 0);
  }
  CutImage image(small, kSize, ranges_.Reader());
  image.Learn(0, ranges_.bytes.substr(0, 10 * kBlockBytes));
  auto memory = image.Memory();
  ASSERT_TRUE(memory.ok()) << memory.status();
  const BlockPool::Count count = small->count();
  EXPECT_GE(count.reserved_bytes, 10 * kBlockBytes);
  EXPECT_LE(count.reserved_bytes + count.used_bytes, 30 * kBlockBytes);
}

}  // namespace
}  // namespace h5mirror::agent
