#include "base/setting_values.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

using ::testing::HasSubstr;

struct Log {
  std::string level;
};

TEST(SettingValuesTest, PermissionsAreOctalAndBounded) {
  EXPECT_EQ(*ParseOctal("0027", 0777), 027u);
  EXPECT_EQ(*ParseOctal("777", 0777), 0777u);
  for (const char* text : {"", "0x1f", "8", "-1", "1000", "000000", " 7"}) {
    EXPECT_THAT(std::string(ParseOctal(text, 0777).status().message()), HasSubstr("0..0777"))
        << text;
  }
}

TEST(SettingValuesTest, ThereAreFourLogLevels) {
  const SettingValue<Log> value = LogLevel(&Log::level);
  Log log;
  EXPECT_TRUE(value.set("warn", log).ok());
  EXPECT_EQ(value.show(log), "warn");
  EXPECT_EQ(value.set("warning", log).message(), "must be one of debug, info, warn, error");
  EXPECT_EQ(log.level, "warn");
}

TEST(SettingValuesTest, TwoWordsAreNamedWithOr) {
  EXPECT_EQ(FindWord("yes", {"true", "false"}).status().message(), "must be true or false");
}

TEST(SettingValuesTest, AFlagHasDashes) { EXPECT_EQ(SettingFlag("tls_cert"), "--tls-cert"); }

}  // namespace
}  // namespace h5mirror
