#include "client_vfd/plugin/parallel/noted_pages.h"

#include <cstdint>
#include <limits>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using PageRun = NotedPages::Run;

constexpr uint64_t kPage = NotedPages::kPageBytes;

TEST(NotedPagesTest, AByteNotesItsPageAndRunsThatTouchBecomeOne) {
  NotedPages pages;
  pages.Add(5, 1);
  pages.Add(3 * kPage - 1, 2);
  EXPECT_THAT(pages.Take(), ElementsAre(PageRun{0, kPage}, PageRun{2 * kPage, 4 * kPage}));
  pages.Add(kPage, kPage);
  pages.Add(0, 1);
  pages.Add(2 * kPage, 1);
  EXPECT_THAT(pages.Take(), ElementsAre(PageRun{0, 3 * kPage}));
}

TEST(NotedPagesTest, WhatWasTakenIsGoneAndNothingAddsNothing) {
  NotedPages pages;
  pages.Add(0, 0);
  EXPECT_TRUE(pages.empty());
  pages.Add(0, 1);
  EXPECT_FALSE(pages.empty());
  pages.Take();
  EXPECT_THAT(pages.Take(), IsEmpty());
}

TEST(NotedPagesTest, ALengthThatRunsOverTheEndIsCutOff) {
  NotedPages pages;
  pages.Add(kPage, std::numeric_limits<uint64_t>::max());
  pages.Add(std::numeric_limits<uint64_t>::max(), 1);
  EXPECT_THAT(pages.Take(), ElementsAre(PageRun{kPage, uint64_t{1} << 63}));
}

TEST(NotedPagesTest, ManyRunsCoverAllThatWasWrittenWithinTheBound) {
  std::mt19937_64 random(7);
  NotedPages pages;
  std::set<uint64_t> written;
  for (int i = 0; i < 50'000; ++i) {
    const uint64_t page = random() % (1 << 20);
    written.insert(page);
    pages.Add(page * kPage + random() % kPage, 1);
  }
  const std::vector<PageRun> runs = pages.Take();
  EXPECT_LE(runs.size(), NotedPages::kRunsMax);
  auto run = runs.begin();
  for (const uint64_t page : written) {
    while (run != runs.end() && run->end <= page * kPage) ++run;
    ASSERT_TRUE(run != runs.end()) << page;
    ASSERT_LE(run->offset, page * kPage) << page;
  }
}

}  // namespace
}  // namespace h5mirror::vfd
