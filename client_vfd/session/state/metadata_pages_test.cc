#include "client_vfd/session/state/metadata_pages.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kPage = MetadataPages::kPageBytes;

TEST(MetadataPagesTest, TellsOfEachPageOnce) {
  MetadataPages pages;
  pages.Add({0, 96});
  pages.Add({kPage - 1, 2});
  pages.Add({10 * kPage, 0});
  EXPECT_THAT(pages.TakeNews(), ElementsAre(PageRun{0, 2}));
  pages.Add({0, 2 * kPage});
  EXPECT_THAT(pages.TakeNews(), IsEmpty());
  pages.Add({kPage, 2 * kPage});
  EXPECT_THAT(pages.TakeNews(), ElementsAre(PageRun{1, 2})) << "partly known";
}

TEST(MetadataPagesTest, TellsAllOfItAgain) {
  MetadataPages pages;
  pages.Add({0, 1});
  pages.Add({5 * kPage, 1});
  EXPECT_THAT(pages.TakeNews(), ElementsAre(PageRun{0, 1}, PageRun{5, 1}));
  pages.TellAgain();
  EXPECT_THAT(pages.TakeNews(), ElementsAre(PageRun{0, 1}, PageRun{5, 1}));
}

TEST(MetadataPagesTest, OneMessageHasABound) {
  MetadataPages pages;
  const uint64_t count = MetadataPages::kNewsMax + 3;
  for (uint64_t i = 0; i < count; ++i) pages.Add({2 * i * kPage, 1});
  EXPECT_EQ(pages.TakeNews().size(), MetadataPages::kNewsMax);
  EXPECT_EQ(pages.TakeNews().size(), 3);
}

}  // namespace
}  // namespace h5mirror::vfd
