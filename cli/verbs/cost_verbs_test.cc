// The verbs that tell what a history costs, drop a part of it and check it, and their flags.
#include "base/strings.h"
#include "cli/testing/cli_test_base.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

class CostVerbsTest : public CliTest {
 protected:
  CostVerbsTest() {
    for (int i = 0; i < 5; ++i) server_.AddVersion("a.h5", StrCat("content ", i), StrCat("c", i));
  }
  v1::RetentionPolicy PrunedBy(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"prune", "a.h5"});
    EXPECT_EQ(Run(flags).code, 0);
    return server_.last_policy();
  }
};

TEST_F(CostVerbsTest, StatsTellsWhatEachVersionCosts) {
  const Result shown = Run({"stats", "a.h5"});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("versions:     5\n"));
  EXPECT_THAT(shown.out, HasSubstr("pages:        20 KiB, of which the next prune gives back 512"));
  EXPECT_THAT(shown.out, HasSubstr("SAVED"));
  EXPECT_THAT(shown.out, Not(HasSubstr("would drop")));
  const Json json = Run({"stats", "a.h5", "--json"}).json();
  EXPECT_EQ(json["version_count"], 5);
  EXPECT_EQ(json["pages_bytes"], 20480);
  EXPECT_EQ(json["garbage_bytes"], 512);
  EXPECT_TRUE(json["prune"].is_null());
  EXPECT_TRUE(json["complete"].get<bool>());
  ASSERT_EQ(json["versions"].size(), 5u);
  EXPECT_EQ(json["versions"][0]["version"], 5);
  EXPECT_EQ(json["versions"][0]["saved_bytes"], 5);
  EXPECT_EQ(Run({"stats", "none.h5"}).code, 3);
}

TEST_F(CostVerbsTest, StatsWithAPolicyTellsWhatAPruneWouldFree) {
  EXPECT_THAT(Run({"stats", "a.h5", "--keep-last", "2"}).out,
              HasSubstr("would drop 3 of 5 versions and give back about 12 KiB"));
  const Json json = Run({"stats", "a.h5", "--keep-last", "2", "--json"}).json();
  EXPECT_EQ(json["prune"]["versions"], 3);
  EXPECT_EQ(json["prune"]["bytes"], 12288);
  EXPECT_EQ(Run({"stats", "a.h5", "--keep-within", "tuesday"}).code, 2);
}

TEST_F(CostVerbsTest, StatsGoesThroughThousandsOfVersionsPageByPage) {
  for (int i = 0; i < 2500; ++i) server_.AddVersion("b.h5", "x");
  const Json all = Run({"stats", "b.h5", "--json"}).json();
  EXPECT_EQ(all["versions"].size(), 2500u);
  EXPECT_EQ(all["version_count"], 2500) << "of the first page";
  const Json some = Run({"stats", "b.h5", "-n", "1200", "--json"}).json();
  EXPECT_EQ(some["versions"].size(), 1200u);
  EXPECT_FALSE(some["complete"].get<bool>());
}

TEST_F(CostVerbsTest, PruneWantsAPolicy) {
  const Result refused = Run({"prune", "a.h5"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("say what to keep"));
  EXPECT_EQ(Run({"prune", "a.h5", "--keep-last", "0"}).code, 2) << "it keeps nothing by name";
  for (const char* bad : {"-1", "many", ""}) {
    EXPECT_EQ(Run({"prune", "a.h5", "--keep-last", bad}).code, 2) << bad;
  }
  for (const char* bad : {"tuesday", "30", "-1d"}) {
    EXPECT_EQ(Run({"prune", "a.h5", "--keep-within", bad}).code, 2) << bad;
  }
}

TEST_F(CostVerbsTest, AMistypedTagDropsNothing) {
  ASSERT_EQ(Run({"tag", "a.h5@2", "published"}).code, 0);
  for (const char* verb : {"prune", "stats"}) {
    const Result refused = Run({verb, "a.h5", "--keep-tag", "publishd"});
    EXPECT_EQ(refused.code, 3) << verb << ": " << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("--keep-tag publishd: ")) << verb;
    EXPECT_EQ(Run({verb, "a.h5", "--keep-tag", "published"}).code, 0) << verb;
  }
}

TEST_F(CostVerbsTest, EachFlagOfPruneIsOneRule) {
  ASSERT_EQ(Run({"tag", "a.h5@1", "a"}).code, 0);
  ASSERT_EQ(Run({"tag", "a.h5@2", "b"}).code, 0);
  const v1::RetentionPolicy policy =
      PrunedBy({"--keep-last", "1", "--keep-hourly", "2", "--keep-daily", "3", "--keep-weekly", "4",
                "--keep-monthly", "5", "--keep-yearly", "6", "--keep-within", "1w2d", "--keep-tag",
                "a", "--keep-tag=b"});
  EXPECT_EQ(policy.keep_last(), 1);
  EXPECT_EQ(policy.keep_hourly(), 2);
  EXPECT_EQ(policy.keep_daily(), 3);
  EXPECT_EQ(policy.keep_weekly(), 4);
  EXPECT_EQ(policy.keep_monthly(), 5);
  EXPECT_EQ(policy.keep_yearly(), 6);
  EXPECT_EQ(policy.keep_within().seconds(), 9 * 86400);
  EXPECT_THAT(policy.keep_tags(), testing::ElementsAre("a", "b"));
  EXPECT_EQ(PrunedBy({"--keep-within", "1.5s"}).keep_within().nanos(), 500'000'000);
}

TEST_F(CostVerbsTest, PruneSaysAboutHowMuchAndThenHowMuch) {
  const Result dry = Run({"prune", "a.h5", "--keep-last", "2", "--dry-run"});
  EXPECT_THAT(dry.out, HasSubstr("keep 2 versions:"));
  EXPECT_THAT(dry.out, HasSubstr("drop 3 versions:"));
  EXPECT_THAT(dry.out,
              HasSubstr("nothing was dropped: --dry-run; it would give back about 12 KiB"));
  EXPECT_THAT(Run({"prune", "a.h5", "--keep-last", "2"}).out,
              HasSubstr("dropped 3 versions, 11.7 KiB given back"));
  const Json planned = Run({"prune", "a.h5", "--keep-last", "2", "--dry-run", "--json"}).json();
  EXPECT_EQ(planned["estimated_bytes"], 12288);
  EXPECT_EQ(planned["freed_bytes"], 0);
  EXPECT_EQ(planned["versions_dropped"], 0);
  const Json done = Run({"prune", "a.h5", "--keep-last", "2", "--json"}).json();
  EXPECT_EQ(done["estimated_bytes"], 12288);
  EXPECT_EQ(done["freed_bytes"], 12000);
  EXPECT_EQ(done["versions_dropped"], 3);
}

TEST_F(CostVerbsTest, VerifyTakesAPartOfTheData) {
  EXPECT_EQ(Run({"verify", "a.h5"}).code, 0);
  EXPECT_EQ(server_.last_subset(), (std::pair<int64_t, int64_t>{0, 0}));
  EXPECT_EQ(Run({"verify", "a.h5", "--read-data-subset", "2/7"}).code, 0);
  EXPECT_EQ(server_.last_subset(), (std::pair<int64_t, int64_t>{2, 7}));
  EXPECT_EQ(Run({"verify", "a.h5", "--read-data-subset", "10%"}).code, 0);
  EXPECT_EQ(server_.last_subset().second, 10);
  for (const char* bad : {"0/7", "8/7", "1/0", "x", "0%", "101%", "1/2/3", "%", "-5%"}) {
    EXPECT_EQ(Run({"verify", "a.h5", "--read-data-subset", bad}).code, 2) << bad;
  }
}

TEST_F(CostVerbsTest, StatusAndLogPassOnTheNotice) {
  EXPECT_THAT(Run({"status", "a.h5"}).out, Not(HasSubstr("history:")));
  EXPECT_TRUE(Run({"log", "a.h5", "--json"}).json()["history_notice"].is_null());
  server_.SetHistoryNotice("a.h5", "stopped: new versions are not made");
  EXPECT_THAT(Run({"status", "a.h5"}).out, HasSubstr("history:      stopped: new versions"));
  EXPECT_EQ(Run({"status", "a.h5", "--json"}).json()["history_notice"],
            "stopped: new versions are not made");
  EXPECT_THAT(Run({"log", "a.h5"}).err, HasSubstr("a.h5: history: stopped"));
  EXPECT_EQ(Run({"log", "a.h5", "--json"}).json()["history_notice"],
            "stopped: new versions are not made");
}

}  // namespace
}  // namespace h5mirror::tools
