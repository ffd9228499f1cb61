#include "cluster/addresses.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AddressesTest, OneIsItself) {
  EXPECT_THAT(SplitAddresses("v2:10.0.0.1:0/5"), ElementsAre("v2:10.0.0.1:0/5"));
  EXPECT_THAT(SplitAddresses("v2:[::1]:0/5"), ElementsAre("v2:[::1]:0/5"));
}

TEST(AddressesTest, SeveralAreTakenApart) {
  EXPECT_THAT(SplitAddresses("[v2:10.0.0.1:0/5,v1:10.0.0.1:0/5]"),
              ElementsAre("v2:10.0.0.1:0/5", "v1:10.0.0.1:0/5"));
  EXPECT_THAT(SplitAddresses("[v2:[::1]:0/5,v1:[::1]:0/5]"),
              ElementsAre("v2:[::1]:0/5", "v1:[::1]:0/5"));
}

TEST(AddressesTest, NothingIsNone) {
  EXPECT_THAT(SplitAddresses(""), IsEmpty());
  EXPECT_THAT(SplitAddresses("[]"), IsEmpty());
  EXPECT_THAT(SplitAddresses(","), IsEmpty());
}

}  // namespace
}  // namespace h5mirror::cluster
