#include "client_vfd/plugin/host/refused_opens.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

TEST(RefusedOpensTest, TwoRefusalsInARowAreAnAppend) {
  RefusedOpens refused;
  EXPECT_FALSE(refused.TakeIsAppend("a.h5"));
  refused.OnRefused("a.h5");
  EXPECT_FALSE(refused.TakeIsAppend("a.h5")) << "only the tentative open";
  refused.OnRefused("a.h5");
  refused.OnRefused("a.h5");
  EXPECT_TRUE(refused.TakeIsAppend("a.h5"));
  EXPECT_FALSE(refused.TakeIsAppend("a.h5")) << "it was taken";
}

TEST(RefusedOpensTest, ARefusedReadIsAnAppendByItself) {
  RefusedOpens refused;
  refused.OnRefusedRead("a.h5");
  EXPECT_TRUE(refused.TakeIsAppend("a.h5"));
}

TEST(RefusedOpensTest, RefusalsOfAnotherFileBeginAnew) {
  RefusedOpens refused;
  refused.OnRefused("a.h5");
  refused.OnRefused("b.h5");
  EXPECT_FALSE(refused.TakeIsAppend("b.h5"));
  refused.OnRefused("a.h5");
  refused.OnRefused("a.h5");
  EXPECT_FALSE(refused.TakeIsAppend("b.h5")) << "forgets all";
  EXPECT_FALSE(refused.TakeIsAppend("a.h5"));
}

}  // namespace
}  // namespace h5mirror::vfd
