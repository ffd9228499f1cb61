#include "onion_store/jobs/segment_survey.h"

#include <memory>

#include "base/strings.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

constexpr uint32_t kPage = 512;

class SegmentSurveyTest : public testing::Test {
 protected:
  SegmentSurveyTest()
      : context_(std::make_shared<StoreContext>(env_, StoreOptions(), *env_.OpenTree("/"))),
        files_(context_, "x.h5"),
        pages_(*context_->tree, "x.h5.h5m", FileId{1}, kPage, 1, 0) {
    files_.Identify(FileId{1}, kPage);
    EXPECT_TRUE(context_->tree->MakeDirectory("x.h5.h5m", 0700).ok());
    row_.page_size_bytes = kPage;
    row_.generation = row_.durable_cut = 1;
    row_.cut_reserved = 1000;
    VersionRow version;
    version.info.version = version.info.cut = version.info.generation = 1;
    auto made = VersionIndex::Create(context_->vfs, *context_->tree, "x.h5.h5m", row_,
                                     {&version, 1}, GenerationRow{1, 1, 0});
    EXPECT_TRUE(made.ok()) << made.status();
    index_ = *std::move(made);
  }
  // Makes a segment of ten records. Rows name the first `live` of them.
  void MakeSegment(int live) {
    std::vector<PageRun> runs;
    for (int i = 0; i < 10; ++i) {
      const uint32_t no_sum[] = {0};
      auto run = pages_.Append(1, 0, page_++, 1, std::string(kPage, 'x'), no_sum);
      ASSERT_TRUE(run.ok()) << run.status();
      if (i < live) runs.push_back(*run);
    }
    ASSERT_TRUE(pages_.Sync().ok());
    ASSERT_TRUE(index_->AddPages(row_, runs).ok());
    pages_.Rotate();
  }
  std::vector<SegmentSpace> DeadEnough() {
    SegmentSurvey survey(files_, *index_, pages_);
    for (bool more = true; more;) more = *survey.Step();
    return *survey.DeadEnough();
  }

  FaultEnv env_;
  std::shared_ptr<StoreContext> context_;
  HistoryFiles files_;
  PageSegments pages_;
  FileRow row_;
  std::unique_ptr<VersionIndex> index_;
  uint64_t page_ = 0;
};

TEST_F(SegmentSurveyTest, FindsTheDeadOnesTheEmptiestFirst) {
  for (int live : {5, 10, 0, 1, 9}) MakeSegment(live);
  std::vector<uint64_t> numbers, rows;
  for (const SegmentSpace& segment : DeadEnough()) {
    numbers.push_back(segment.number);
    rows.push_back(segment.live_rows);
    EXPECT_GT(segment.size_bytes, 10 * kPage);
    EXPECT_EQ(segment.live_bytes, segment.live_rows * (segment.size_bytes / 10));
  }
  EXPECT_THAT(numbers, testing::ElementsAre(3, 4, 1)) << "less than an eighth of 2 and 5 is dead";
  EXPECT_THAT(rows, testing::ElementsAre(0, 1, 5));
}

TEST_F(SegmentSurveyTest, FindsNothingInAnEmptyHistory) { EXPECT_TRUE(DeadEnough().empty()); }

}  // namespace
}  // namespace h5mirror::store
