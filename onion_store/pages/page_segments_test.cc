#include "onion_store/pages/page_segments.h"

#include "base/crc32c.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/pages/sums_file.h"

namespace h5mirror::store {
namespace {

constexpr uint32_t kPage = 512;

class PageSegmentsTest : public testing::Test {
 protected:
  PageSegmentsTest() : tree_(*env_.OpenTree("/")), pages_(*tree_, "d", FileId{1}, kPage, 1, 0) {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
  }
  PageRun Append(uint64_t page, int level, char byte) {
    const std::vector<uint32_t> crcs(size_t{1} << level, Crc32c(std::string(kPage, byte)));
    auto run = pages_.Append(1, level, page, 5, std::string(kPage << level, byte), crcs);
    EXPECT_TRUE(run.ok()) << run.status();
    return *run;
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  PageSegments pages_;
};

TEST_F(PageSegmentsTest, APageInTheMiddleOfARunIsFound) {
  Append(2, 0, 'a');
  PageRun run = Append(4, 2, 'b');
  ASSERT_TRUE(pages_.Sync().ok());
  std::string page(kPage, '\0');
  ASSERT_TRUE(pages_.Read(run, 1, 6, absl::MakeSpan(page)).ok());
  EXPECT_EQ(page, std::string(kPage, 'b'));
}

TEST_F(PageSegmentsTest, AFlippedBitIsDataLossAndNamesSegmentAndOffset) {
  Append(2, 0, 'a');
  PageRun run = Append(4, 0, 'b');
  ASSERT_TRUE(pages_.Sync().ok());
  auto file = tree_->Open("d/pages-000001", OpenKind::kWrite, 0);
  ASSERT_TRUE(WriteAt(**file, pages_.end_bytes() - 1, "c").ok());
  std::string page(kPage, '\0');
  absl::Status read = pages_.Read(run, 1, 4, absl::MakeSpan(page));
  EXPECT_TRUE(absl::IsDataLoss(read)) << read;
  EXPECT_THAT(std::string(read.message()),
              testing::HasSubstr("pages-000001, record at " + std::to_string(run.offset)));
}

TEST_F(PageSegmentsTest, AfterAFullDiskTheNextRecordTakesThePlaceOfTheLostOne) {
  Append(2, 0, 'a');
  ASSERT_TRUE(pages_.Sync().ok());
  uint64_t end = pages_.end_bytes();
  Append(3, 0, 'b');
  env_.FailCall(0, absl::ResourceExhaustedError("No space left on device"));
  EXPECT_TRUE(absl::IsResourceExhausted(pages_.Sync()));
  PageRun run = Append(3, 0, 'c');
  EXPECT_EQ(run.offset, end);
  ASSERT_TRUE(pages_.Sync().ok());
  std::string page(kPage, '\0');
  ASSERT_TRUE(pages_.Read(run, 1, 3, absl::MakeSpan(page)).ok());
  EXPECT_EQ(page, std::string(kPage, 'c'));
}

TEST_F(PageSegmentsTest, ASumOfAHoleIsAHole) {
  SumsFile sums(*tree_->Open("d/sums-1", OpenKind::kCreate, 0600), kPage);
  EXPECT_EQ(sums.SumOf(std::string(kPage, '\0')), 0u);
  EXPECT_NE(sums.SumOf(std::string(kPage, 'a')), 0u);
  const uint32_t written[] = {7, 8};
  ASSERT_TRUE(sums.Write(3, written).ok());
  EXPECT_THAT(*sums.Read(2, 4), testing::ElementsAre(0, 7, 8, 0));
  ASSERT_TRUE(sums.Truncate(4).ok());
  EXPECT_THAT(*sums.Read(2, 4), testing::ElementsAre(0, 7, 0, 0));
}

}  // namespace
}  // namespace h5mirror::store
