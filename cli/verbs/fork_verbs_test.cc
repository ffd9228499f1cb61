// The verbs that fork a file and promote a fork, against a server on a real socket.
#include "absl/strings/str_split.h"
#include "base/strings.h"
#include "cli/testing/cli_test_base.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

class ForkVerbsTest : public CliTest {
 protected:
  ForkVerbsTest() {
    server_.SetTime(absl::FromCivil(absl::CivilHour(2026, 11, 3, 10), absl::UTCTimeZone()));
    server_.AddVersion("run.h5", "one");
    server_.AddVersion("run.h5", "two");
  }
};

TEST_F(ForkVerbsTest, AForkBeginsWithTheVersion) {
  const Result forked = Run({"fork", "run.h5@2", "trial.h5"});
  EXPECT_EQ(forked.code, 0) << forked.err;
  EXPECT_THAT(forked.out, HasSubstr("trial.h5 begins as version 2 of run.h5"));
  EXPECT_THAT(forked.out, HasSubstr("  h5mirror promote trial.h5 run.h5\n"));
  for (const auto& line : absl::StrSplit(forked.out, '\n')) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_EQ(Run({"export", "trial.h5@1", "-"}).out, "two");
  EXPECT_THAT(Run({"log", "trial.h5"}).out, HasSubstr("fork of run.h5@2"));
}

TEST_F(ForkVerbsTest, AForkOfAnOldVersionSaysThatItCannotBePromoted) {
  const Result forked = Run({"fork", "run.h5@1", "trial.h5"});
  EXPECT_EQ(forked.code, 0) << forked.err;
  EXPECT_THAT(forked.out, HasSubstr("version 1 is not the newest of run.h5 (2): trial.h5\n"
                                    "cannot be promoted while run.h5 is at version 2 with other "
                                    "bytes.\n"));
  EXPECT_THAT(forked.out, HasSubstr("\n  h5mirror fork run.h5@latest NEW\n"));
  EXPECT_THAT(forked.out, Not(HasSubstr("h5mirror promote")));
  for (const auto& line : absl::StrSplit(forked.out, '\n')) EXPECT_LE(line.size(), 80u) << line;
  EXPECT_EQ(Run({"export", "trial.h5@1", "-"}).out, "one");
  EXPECT_EQ(Run({"promote", "trial.h5", "run.h5"}).code, 5);
}

TEST_F(ForkVerbsTest, ForkPrintsWhatItMade) {
  const Json json = Run({"fork", "run.h5@latest", "trial.h5", "-m", "a try", "--json"}).json();
  EXPECT_EQ(json["file"], "run.h5");
  EXPECT_EQ(json["from_version"], 2);
  EXPECT_EQ(json["new_name"], "trial.h5");
  EXPECT_EQ(json["version"]["comment"], "a try");
  EXPECT_EQ(json["version"]["source"]["kind"], "fork");
  EXPECT_EQ(json["version"]["source"]["version"], 2);
}

TEST_F(ForkVerbsTest, ShowAndStatusTellOfTheFork) {
  ASSERT_EQ(Run({"fork", "run.h5@1", "trial.h5"}).code, 0);
  const char* const line = "fork of:      run.h5@1, forked at 2026-11-03 10:00:00 UTC";
  EXPECT_THAT(Run({"show", "trial.h5@1"}).out, HasSubstr(line));
  EXPECT_THAT(Run({"status", "trial.h5"}).out, HasSubstr(line));
  EXPECT_EQ(Run({"status", "trial.h5", "--json"}).json()["forked_from"]["name"], "run.h5");
  EXPECT_TRUE(Run({"status", "run.h5", "--json"}).json()["forked_from"].is_null());
  EXPECT_THAT(Run({"show", "run.h5@1"}).out, Not(HasSubstr("fork of")));
}

TEST_F(ForkVerbsTest, AForkNeedsAVersionAndAFreeName) {
  EXPECT_EQ(Run({"fork", "run.h5", "trial.h5"}).code, 2) << "no version is named";
  EXPECT_EQ(Run({"fork", "run.h5@9", "trial.h5"}).code, 3);
  EXPECT_EQ(Run({"fork", "none.h5@1", "trial.h5"}).code, 3);
  const Result taken = Run({"fork", "run.h5@1", "run.h5"});
  EXPECT_EQ(taken.code, 5);
  EXPECT_THAT(taken.err, HasSubstr("run.h5 exists"));
}

TEST_F(ForkVerbsTest, APromotionIsTheNewestVersion) {
  ASSERT_EQ(Run({"fork", "run.h5@2", "trial.h5"}).code, 0);
  server_.AddVersion("trial.h5", "corrected");
  const Result dry = Run({"promote", "trial.h5", "run.h5", "--dry-run"});
  EXPECT_THAT(dry.out, HasSubstr("version 2 of trial.h5 can become a version of run.h5, after "
                                 "version 2: at most 9 B differ"));
  EXPECT_EQ(server_.file("run.h5").versions.size(), 2u);
  const Json json = Run({"promote", "trial.h5", "run.h5", "-m", "better", "--json"}).json();
  EXPECT_EQ(json["fork"], "trial.h5");
  EXPECT_EQ(json["fork_version"], 2);
  EXPECT_EQ(json["file"], "run.h5");
  EXPECT_EQ(json["version"]["version"], 3);
  EXPECT_EQ(json["version"]["comment"], "better");
  EXPECT_EQ(json["unchanged"], false);
  EXPECT_EQ(json["dry_run"], false);
  EXPECT_EQ(Run({"export", "run.h5@latest", "-"}).out, "corrected");
  EXPECT_THAT(Run({"show", "run.h5@3"}).out, HasSubstr("promoted:     trial.h5@2, taken over at "));
}

TEST_F(ForkVerbsTest, APromotionOfAnOldVersionTakesThatOne) {
  ASSERT_EQ(Run({"fork", "run.h5@2", "trial.h5"}).code, 0);
  server_.AddVersion("trial.h5", "corrected");
  server_.AddVersion("trial.h5", "spoilt");
  ASSERT_EQ(Run({"promote", "trial.h5", "run.h5", "--version", "latest-1"}).code, 0);
  EXPECT_EQ(Run({"export", "run.h5@latest", "-"}).out, "corrected");
  EXPECT_EQ(Run({"promote", "trial.h5", "run.h5", "--version", "soon"}).code, 2);
}

TEST_F(ForkVerbsTest, AForkWithoutAChangePromotesNothing) {
  ASSERT_EQ(Run({"fork", "run.h5@2", "trial.h5"}).code, 0);
  const Result same = Run({"promote", "trial.h5", "run.h5"});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, HasSubstr("run.h5 is as in version 1 of trial.h5 already: version 2"));
  EXPECT_EQ(server_.file("run.h5").versions.size(), 2u);
}

TEST_F(ForkVerbsTest, AnOlderServerHasNoForks) {
  for (const char* call : {"ForkVersion", "PromoteVersion"}) {
    server_.On(call, [] { return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""); });
  }
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"fork", "run.h5@1", "trial.h5"}, {"promote", "run.h5", "run.h5"}}) {
    const Result refused = Run(words);
    EXPECT_EQ(refused.code, 5) << words[0];
    EXPECT_THAT(refused.err, HasSubstr("an older server has no forks: update it")) << words[0];
  }
}

TEST_F(ForkVerbsTest, AFileWithoutAServerHasNoForks) {
  Write("own.h5", "bytes");
  Write("own.h5.h5m/index", "bytes");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"promote", Path("own.h5"), "run.h5"}, {"promote", "run.h5", Path("own.h5")}}) {
    const Result refused = Run(words);
    EXPECT_EQ(refused.code, 5);
    EXPECT_THAT(refused.err, HasSubstr("and no server, which alone keeps forks"));
  }
}

TEST_F(ForkVerbsTest, APromotionToAFileThatMovedOnIsRefused) {
  ASSERT_EQ(Run({"fork", "run.h5@2", "trial.h5"}).code, 0);
  server_.AddVersion("trial.h5", "corrected");
  server_.AddVersion("run.h5", "three");
  const Result refused = Run({"promote", "trial.h5", "run.h5"});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("the newest is version 3"));
  EXPECT_EQ(Run({"promote", "run.h5", "trial.h5"}).code, 5) << "the other way round";
  EXPECT_EQ(Run({"promote", "trial.h5", "none.h5"}).code, 3);
}

}  // namespace
}  // namespace h5mirror::tools
