// The verbs that name versions by tags and times, against a server on a real socket.
#include "base/strings.h"
#include "cli/testing/cli_test_base.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

class VersionVerbsTest : public CliTest {
 protected:
  // Versions 1, 2 and 3, of 10, 11 and 12 o'clock UTC.
  VersionVerbsTest() {
    for (int hour : {10, 11, 12}) {
      server_.SetTime(absl::FromCivil(absl::CivilHour(2026, 11, 3, hour), absl::UTCTimeZone()));
      server_.AddVersion("a.h5", StrCat("content of ", hour));
    }
  }
};

TEST_F(VersionVerbsTest, ATimeIsTheNewestVersionOfThen) {
  EXPECT_EQ(Run({"export", "a.h5@2026-11-03T11:00:00Z", "-"}).out, "content of 11");
  EXPECT_EQ(Run({"export", "a.h5@2026-11-03T10:59:59Z", "-"}).out, "content of 10");
  EXPECT_EQ(Run({"export", "a.h5@2026-11-03T13:30+01:00", "-"}).out, "content of 12");
  EXPECT_EQ(Run({"export", "a.h5@2026-11-03T09:00Z", "-"}).code, 3);
}

TEST_F(VersionVerbsTest, ALocalTimeIsSaidInUtc) {
  const Result local = Run({"export", "a.h5@2026-11-03T11:30", "-"});
  EXPECT_EQ(local.out, "content of 11");
  EXPECT_EQ(local.err, "h5mirror: 2026-11-03T11:30 is 2026-11-03T11:30:00Z\n");
  EXPECT_EQ(Run({"export", "a.h5@2026-11-03T11:30Z", "-"}).err, "");
}

TEST_F(VersionVerbsTest, LogTakesATimeFromAndTo) {
  auto versions = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"log", "a.h5", "--json"});
    const Json listed = Run(arguments).json()["versions"];
    std::vector<int> numbers;
    for (const Json& version : listed) numbers.push_back(version["version"].get<int>());
    return numbers;
  };
  EXPECT_THAT(versions({"--since", "2026-11-03T11:00Z"}), testing::ElementsAre(3, 2));
  EXPECT_THAT(versions({"--until", "2026-11-03T11:00Z"}), testing::ElementsAre(2, 1));
  EXPECT_THAT(versions({"--since", "2026-11-03T10:30Z", "--until", "2026-11-03T11:30Z"}),
              testing::ElementsAre(2));
  EXPECT_THAT(versions({"--since", "2026-11-03T10:30Z", "--limit", "1"}), testing::ElementsAre(3));
  EXPECT_THAT(versions({"--since", "2026-11-04T00:00Z"}), testing::IsEmpty());
  EXPECT_THAT(versions({"--since", "2026-11-03"}), testing::ElementsAre(3, 2, 1));
  EXPECT_THAT(versions({"--until", "2026-11-03"}), testing::ElementsAre(3, 2, 1));
  EXPECT_THAT(versions({"--until", "2026-11-02"}), testing::IsEmpty());
  EXPECT_THAT(versions({"--since", "now"}), testing::IsEmpty());
  EXPECT_EQ(Run({"log", "a.h5", "--since", "tomorrow"}).code, 2);
  EXPECT_EQ(
      Run({"log", "a.h5", "--since", "2026-11-03T11:00Z", "--until", "2026-11-03T10:00Z"}).code, 2);
}

TEST_F(VersionVerbsTest, LogOfOneVersionTellsTheWay) {
  const Result refused = Run({"log", "a.h5@2"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_THAT(refused.err, HasSubstr("h5mirror log a.h5; h5mirror show a.h5@2"));
  EXPECT_THAT(Run({"log", "b.h5"}).err, Not(HasSubstr("show")));
}

TEST_F(VersionVerbsTest, ATagNamesAVersionEverywhere) {
  const Json tagged = Run({"tag", "a.h5@latest-1", "published", "--json"}).json();
  EXPECT_EQ(tagged["version"]["version"], 2);
  EXPECT_EQ(tagged["version"]["tags"], Json::array({"published"}));
  EXPECT_TRUE(tagged["previous_version"].is_null());
  EXPECT_EQ(Run({"export", "a.h5@tag:published", "-"}).out, "content of 11");
  EXPECT_EQ(Run({"rollback", "a.h5@tag:published", "--json"}).json()["from_version"], 2);
  EXPECT_THAT(Run({"log", "a.h5"}).out, HasSubstr("published"));
  EXPECT_EQ(Run({"export", "a.h5@tag:draft", "-"}).code, 3);
}

TEST_F(VersionVerbsTest, ATagMovesOnlyWhenTold) {
  ASSERT_EQ(Run({"tag", "a.h5@1", "published"}).code, 0);
  const Result refused = Run({"tag", "a.h5@2", "published"});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("version 1 has it; --force moves it"));
  EXPECT_THAT(Run({"tag", "a.h5@2", "published", "--force"}).out, HasSubstr("which version 1 had"));
  EXPECT_EQ(Run({"untag", "a.h5", "published", "--json"}).json()["version"], 2);
  EXPECT_EQ(Run({"untag", "a.h5", "published"}).code, 3);
}

TEST_F(VersionVerbsTest, DiffSaysThatItsHelperIsMissing) {
  setenv("H5MIRROR_LIBEXEC_DIR", directory_.c_str(), 1);
  const Result result = Run({"diff", "a.h5@1"});
  unsetenv("H5MIRROR_LIBEXEC_DIR");
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("HDF5 1.14 or later: h5mirror-diff is not in"));
}

TEST_F(VersionVerbsTest, WhatLooksAtObjectsSaysSoToo) {
  setenv("H5MIRROR_LIBEXEC_DIR", directory_.c_str(), 1);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"log", "a.h5:/g"}, {"blame", "a.h5:/g"}, {"find", "/g"}}) {
    const Result result = Run(words);
    EXPECT_EQ(result.code, 3) << words[0];
    EXPECT_THAT(result.err, HasSubstr("h5mirror-diff is not in")) << words[0];
  }
  unsetenv("H5MIRROR_LIBEXEC_DIR");
  EXPECT_EQ(Run({"blame", "a.h5"}).code, 2) << "no object";
  EXPECT_EQ(Run({"log", "a.h5"}).code, 0) << "the versions need no helper";
}

TEST_F(VersionVerbsTest, PagesOfADiffHaveNoPathsAndNoNumbers) {
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--exclude", "/g"}, {"--rtol", "1"}, {"--atol", "1"}}) {
    EXPECT_EQ(Run({"diff", "--pages", "a.h5@1", more[0], more[1]}).code, 2) << more[0];
  }
  const Result result = Run({"diff", "a.h5@1", "--rtol", "-1"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("is no number from 0"));
}

TEST_F(VersionVerbsTest, ShowSaysAllThatIsKnown) {
  const Result text = Run({"show", "a.h5@2"});
  for (const char* word : {"version:      2, cut 2, generation 1", "2026-11-03 11:00:00", "node7",
                           "ada (unverified)", "python3", "0 pages, 13 B written"}) {
    EXPECT_THAT(text.out, HasSubstr(word));
  }
  EXPECT_EQ(Run({"show", "a.h5@2", "--json"}).json()["version"]["size_bytes"], 13);
  EXPECT_EQ(Run({"show", "a.h5@9"}).code, 3);
  EXPECT_EQ(Run({"show", "a.h5"}).code, 2);
}

TEST_F(VersionVerbsTest, TheMapIsAListOfRuns) {
  server_.AddVersion("b.h5", std::string(3 * 4096, 'x'));
  server_.AddVersion("b.h5", std::string(3 * 4096, 'y'));
  const Json map = Run({"show", "b.h5@1", "--map", "--json"}).json();
  EXPECT_EQ(map["version"]["version"], 1);
  EXPECT_EQ(map["page_size_bytes"], 4096);
  ASSERT_EQ(map["map"].size(), 2u);
  EXPECT_EQ(map["map"][0]["file"], "b.h5.h5m/pages-000001");
  EXPECT_EQ(map["map"][1]["page_count"], 2);
  EXPECT_EQ(map["map"][1]["offset"], 4096);
  EXPECT_THAT(Run({"show", "b.h5@1", "--map"}).out,
              HasSubstr("  1-2      2  head     4096  b.h5\n"));
}

TEST_F(VersionVerbsTest, TheMapOfAnEmptyVersionIsEmpty) {
  server_.AddVersion("b.h5", "");
  EXPECT_EQ(Run({"show", "b.h5@latest", "--map", "--json"}).json()["map"], Json::array());
  EXPECT_THAT(Run({"show", "b.h5@latest", "--map"}).out, Not(HasSubstr("head")));
}

}  // namespace
}  // namespace h5mirror::tools
