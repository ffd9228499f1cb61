#include "cli/verbs/doctor_config.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using ::testing::HasSubstr;

TEST(DoctorConfigTest, KeysThatTheDriverKnowsAreFine) {
  const Check check = CheckDriverConfig(" server=node7:7447; root=/data;", "node7:7447");
  EXPECT_EQ(check.health, Health::kOk) << check.detail;
}

TEST(DoctorConfigTest, AKeyThatItDoesNotKnowFailsAndTheNearestIsNamed) {
  const Check check = CheckDriverConfig("root=/data;servr=node7", "node7");
  EXPECT_EQ(check.health, Health::kFail);
  EXPECT_THAT(check.detail, HasSubstr("\"servr\""));
  EXPECT_THAT(check.way_out, HasSubstr("server"));
}

TEST(DoctorConfigTest, AnotherServerThanTheOneThatIsAskedIsSaid) {
  const Check check = CheckDriverConfig("server=node7:9999", "127.0.0.1:7447");
  EXPECT_EQ(check.health, Health::kWarn);
  EXPECT_THAT(check.detail, HasSubstr("node7:9999, and 127.0.0.1:7447"));
}

TEST(DoctorConfigTest, AnItemWithoutAValueFails) {
  const Check check = CheckDriverConfig("root=/data;mode", "node7");
  EXPECT_EQ(check.health, Health::kFail);
  EXPECT_THAT(check.detail, HasSubstr("\"mode\" is no KEY=VALUE"));
}

TEST(DoctorConfigTest, OneOfTheServersOfAListIsEnoughHoweverItIsWritten) {
  EXPECT_EQ(CheckDriverConfig("server=node8,Node7", "node7:7447").health, Health::kOk);
}

TEST(DoctorConfigTest, AFileIsNamedAndNotRead) {
  EXPECT_THAT(CheckDriverConfig("@/etc/driver.toml", "s").detail, HasSubstr("/etc/driver.toml"));
}

}  // namespace
}  // namespace h5mirror::tools
