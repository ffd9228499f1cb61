#include "client_vfd/plugin/host/told_once.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

TEST(ToldOnceTest, AnEventOfAFileIsNewsOnce) {
  ToldOnce told;
  EXPECT_TRUE(told.IsNews("/a.h5", "behind"));
  EXPECT_FALSE(told.IsNews("/a.h5", "behind"));
  EXPECT_TRUE(told.IsNews("/a.h5", "diverged"));
  EXPECT_TRUE(told.IsNews("/b.h5", "behind"));
}

TEST(ToldOnceTest, AFileThatIsMirroredAgainMakesNews) {
  ToldOnce told;
  told.IsNews("/a.h5", "behind");
  told.IsNews("/a.h5", "diverged");
  told.IsNews("/a.h5x", "behind");
  told.Forget("/a.h5");
  EXPECT_TRUE(told.IsNews("/a.h5", "behind"));
  EXPECT_TRUE(told.IsNews("/a.h5", "diverged"));
  EXPECT_FALSE(told.IsNews("/a.h5x", "behind"));
}

TEST(ToldOnceTest, ItsMemoryIsBounded) {
  ToldOnce told;
  for (size_t i = 0; i < ToldOnce::kEntriesMax; ++i) told.IsNews(std::to_string(i), "behind");
  EXPECT_TRUE(told.IsNews("/a.h5", "behind"));
  EXPECT_TRUE(told.IsNews("0", "behind"));  // Again, rather than growing.
}

}  // namespace
}  // namespace h5mirror::vfd
