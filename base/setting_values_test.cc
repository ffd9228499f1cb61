#include "base/setting_values.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

using ::testing::HasSubstr;

TEST(SettingValuesTest, PermissionsAreOctalAndBounded) {
  EXPECT_EQ(*ParseOctal("0027", 0777), 027u);
  EXPECT_EQ(*ParseOctal("777", 0777), 0777u);
  for (const char* text : {"", "0x1f", "8", "-1", "1000", "000000", " 7"}) {
    EXPECT_THAT(std::string(ParseOctal(text, 0777).status().message()), HasSubstr("0..0777"))
        << text;
  }
}

TEST(SettingValuesTest, ThereAreFourLogLevels) {
  EXPECT_TRUE(CheckLogLevel("warn").ok());
  EXPECT_THAT(std::string(CheckLogLevel("warning").message()), HasSubstr("debug, info, warn"));
}

}  // namespace
}  // namespace h5mirror
