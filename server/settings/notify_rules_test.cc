#include "server/settings/notify_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/settings/config.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class NotifyRulesTest : public ::testing::Test {
 protected:
  absl::StatusOr<Config> Read(const std::string& text) {
    directory_.Write("h5mirrord.toml", "root = \"/data\"\n" + text);
    const auto settings = ReadConfigFile(directory_.path() / "h5mirrord.toml");
    if (!settings.ok()) return settings.status();
    return MakeConfig(*settings);
  }
  NotifyRule One(const std::string& keys) {
    const auto config = Read("[[notify]]\n" + keys);
    EXPECT_TRUE(config.ok()) << config.status();
    return config.ok() && !config->notify.empty() ? config->notify[0] : NotifyRule();
  }
  std::string Error(const std::string& keys) {
    const absl::Status status = Read("[[notify]]\n" + keys).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  }

  TestDirectory directory_;
};

TEST_F(NotifyRulesTest, TablesAreReadInTheirOrder) {
  const auto config = Read(R"(
[[notify]]
events = ["writer_lost", "diverged"]
files = "runs/**"
url = "https://hooks.example/T0/s3cret"
secret_file = "/etc/h5mirror/hook.key"
[[notify]]
command = ["/usr/local/bin/tell", "ops", "a b"]
[[notify]]
mail = ["ops@example.org", "anna@example.org"]
events = "disk_low"
)");
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->notify.size(), 3u);
  EXPECT_THAT(config->notify[0].events, ElementsAre(EventKind::kWriterLost, EventKind::kDiverged));
  EXPECT_EQ(config->notify[0].kind(), ReceiverKind::kUrl);
  EXPECT_THAT(config->notify[1].command, ElementsAre("/usr/local/bin/tell", "ops", "a b"));
  EXPECT_EQ(config->notify[1].kind(), ReceiverKind::kCommand);
  EXPECT_THAT(config->notify[2].mail, ElementsAre("ops@example.org", "anna@example.org"));
  EXPECT_EQ(config->notify[2].sendmail, "/usr/sbin/sendmail");
  EXPECT_THAT(config->notify[2].source, HasSubstr("h5mirrord.toml:10"));
}

TEST_F(NotifyRulesTest, AnEventWithoutAFileIsOfAllFiles) {
  const NotifyRule rule = One("mail = \"a@b\"\nfiles = \"runs/**\"");
  EXPECT_TRUE(rule.Takes(EventKind::kDiskLow, ""));
  EXPECT_TRUE(rule.Takes(EventKind::kWriterLost, "runs/a.h5"));
  EXPECT_FALSE(rule.Takes(EventKind::kWriterLost, "other/a.h5"));
  const NotifyRule some = One("mail = \"a@b\"\nevents = \"diverged\"");
  EXPECT_TRUE(some.Takes(EventKind::kDiverged, "a.h5"));
  EXPECT_FALSE(some.Takes(EventKind::kDiskLow, ""));
  EXPECT_TRUE(some.Takes(EventKind::kTest, ""));
}

TEST_F(NotifyRulesTest, UnknownKeysAndEventsAreSuggested) {
  EXPECT_THAT(Error("urll = \"https://a/\""), HasSubstr("did you mean \"url\"?"));
  EXPECT_THAT(Error("mail = \"a@b\"\nevent = \"diverged\""), HasSubstr("did you mean \"events\"?"));
  EXPECT_THAT(Error("mail = \"a@b\"\nevents = \"diverge\""),
              HasSubstr("did you mean \"diverged\"?"));
  EXPECT_THAT(Error("mail = \"a@b\"\nevents = \"everything\""),
              HasSubstr("there are writer_lost,"));
  EXPECT_THAT(Error("mail = \"a@b\"\nevents = \"test\""), HasSubstr("is no event"));
  EXPECT_THAT(Error("colour = 3"), HasSubstr("be-told.md"));
}

TEST_F(NotifyRulesTest, ATableHasOneReceiverAndItsKeys) {
  EXPECT_THAT(Error("events = \"diverged\""), HasSubstr("does not say who is told"));
  EXPECT_THAT(Error("url = \"https://a/\"\nmail = \"a@b\""), HasSubstr("more than one of url"));
  EXPECT_THAT(Error("url = [\"https://a/\", \"https://b/\"]"), HasSubstr("takes one value"));
  EXPECT_THAT(Error("mail = \"a@b\"\nsecret_file = \"/k\""), HasSubstr("belong to a url"));
  EXPECT_THAT(Error("command = \"/k\"\nsendmail = \"/k\""), HasSubstr("sendmail belongs to mail"));
  EXPECT_THAT(Error("mail = []"), HasSubstr("names none"));
}

TEST_F(NotifyRulesTest, ValuesThatCouldDoHarmAreRefused) {
  EXPECT_THAT(Error("url = \"file:///etc/passwd\""), HasSubstr("https://"));
  EXPECT_THAT(Error("command = \"tell ops\""), HasSubstr("absolute path"));
  EXPECT_THAT(Error("mail = \"a@b\\nBcc: c@d\""), HasSubstr("an address"));
  EXPECT_THAT(Error("mail = \"a@b, c@d\""), HasSubstr("an address"));
  EXPECT_THAT(Error("mail = \"ops\""), HasSubstr("an address"));
  EXPECT_THAT(Error("mail = \"a@b\"\nsendmail = \"sendmail\""), HasSubstr("absolute path"));
  EXPECT_THAT(Error("mail = \"a@b\"\nfiles = \"/runs\""), HasSubstr("files"));
}

TEST_F(NotifyRulesTest, SecretsOfAUrlAreNotShown) {
  const NotifyRule rule = One("url = \"https://hooks.example/T0/s3cret\"");
  EXPECT_EQ(rule.Label(), "url https://hooks.example");
  EXPECT_THAT(Describe(rule), Not(HasSubstr("s3cret")));
  EXPECT_THAT(Error("url = \"https://u:s3cret@hooks.example/\""), Not(HasSubstr("s3cret")));
}

TEST_F(NotifyRulesTest, DescriptionsNameAllKeys) {
  EXPECT_EQ(Describe(One("mail = \"a@b\"\nevents = [\"disk_low\"]\nfiles = [\"x\", \"y/**\"]")),
            "[[notify]]\nevents = [\"disk_low\"]\nfiles = [\"x\", \"y/**\"]\nmail = [\"a@b\"]\n"
            "sendmail = \"/usr/sbin/sendmail\"\n");
  EXPECT_EQ(Describe(One("command = [\"/bin/x\", \"y\"]")),
            "[[notify]]\ncommand = [\"/bin/x\", \"y\"]\n");
}

TEST_F(NotifyRulesTest, TheReceiverIsTheSameWhateverItIsToldOf) {
  const NotifyRule rule = One("url = \"https://a/\"\nevents = \"diverged\"");
  EXPECT_TRUE(rule.HasReceiverOf(One("url = \"https://a/\"\nsecret_file = \"/k\"")));
  EXPECT_FALSE(rule.HasReceiverOf(One("url = \"https://a/b\"")));
}

TEST_F(NotifyRulesTest, ThereAreNotTooManyTables) {
  std::string text;
  for (int i = 0; i < 65; ++i) text += "[[notify]]\nmail = \"a@b\"\n";
  EXPECT_THAT(std::string(Read(text).status().message()), HasSubstr("64 such tables at most"));
}

}  // namespace
}  // namespace h5mirror::server
