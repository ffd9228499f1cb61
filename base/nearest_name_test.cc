#include "base/nearest_name.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace h5mirror {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"listen", "listed", "roots"};

TEST(NearestNameTest, TheFirstOfTheNearest) {
  EXPECT_EQ(NearestName("listen", kNames), "listen");
  EXPECT_EQ(NearestName("lsiten", kNames), "listen");
  EXPECT_EQ(NearestName("liste", kNames), "listen");  // One edit from both.
  EXPECT_EQ(NearestName("root", kNames), "roots");
  EXPECT_EQ(NearestName("ro", kNames), "roots");
}

TEST(NearestNameTest, AsFarAsIsAskedFor) {
  EXPECT_EQ(NearestName("lsten", kNames, 1), "listen");
  EXPECT_EQ(NearestName("lstn", kNames, 1), "");
}

TEST(NearestNameTest, NothingIsNear) {
  EXPECT_EQ(NearestName("r", kNames), "");
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(NearestName("listen", {}), "");
  EXPECT_EQ(NearestName(std::string(100'000, 'x'), kNames), "");
}

}  // namespace
}  // namespace h5mirror
