// The verbs that read, against a server on a real socket.
#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/strings.h"
#include "cli/output/text.h"
#include "cli/testing/cli_test_base.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class VerbsTest : public CliTest {};

TEST_F(VerbsTest, UsageErrorsAreOneLineAndTwo) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{},
                                                                     {"dance"},
                                                                     {"ls", "--what"},
                                                                     {"log"},
                                                                     {"export", "run.h5", "out.h5"},
                                                                     {"log", "run.h5", "-n", "0"},
                                                                     {"exec"},
                                                                     {"push", "--name"}}) {
    const Result result = Run(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, StartsWith("h5mirror: "));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
}

TEST_F(VerbsTest, HelpListsVerbsAndExitCodes) {
  const Result result = RunBare({"--help"});
  EXPECT_EQ(result.code, 0);
  for (const char* word : {"recover", "doctor", "exec", "Exit codes", "refused"}) {
    EXPECT_THAT(result.out, HasSubstr(word));
  }
}

// The words behind a title of --help, up to an empty line.
std::vector<std::string> VerbsOf(const std::string& help) {
  std::vector<std::string> verbs;
  const size_t at = help.find("Subcommands:\n");
  for (const absl::string_view line : absl::StrSplit(absl::string_view(help).substr(at), '\n')) {
    if (!absl::StartsWith(line, "  ") || absl::StartsWith(line, "   ")) continue;
    verbs.emplace_back(line.substr(2, line.find(' ', 2) - 2));
    if (verbs.back() == "exec") break;
  }
  return verbs;
}

TEST_F(VerbsTest, NoHelpIsWiderThan80Columns) {
  std::vector<std::string> verbs = VerbsOf(RunBare({"--help"}).out);
  ASSERT_GE(verbs.size(), 23u);
  verbs.emplace_back();
  for (const std::string& verb : verbs) {
    const Result help = verb.empty() ? RunBare({"--help"}) : RunBare({verb, "--help"});
    for (const absl::string_view line : absl::StrSplit(help.out, '\n')) {
      EXPECT_LE(line.size(), 80u) << verb << ": " << line;
    }
  }
}

TEST_F(VerbsTest, AWrongValueIsQuotedWithTheAllowedOnes) {
  const auto said = [&](const std::vector<std::string>& words) {
    const Result result = RunBare(words);
    EXPECT_EQ(result.code, 2);
    return result.err;
  };
  EXPECT_EQ(said({"log", "a.h5", "-n", "0"}),
            "h5mirror: --limit: '0' is no whole number of 1 or more; see h5mirror --help\n");
  EXPECT_THAT(said({"push", "a.h5", "-j", "x"}),
              HasSubstr("--jobs: 'x' is no whole number from 1 to 64"));
  EXPECT_THAT(said({"watch", "a.h5", "--changes", "byte"}),
              HasSubstr("'byte' is not one of bytes, none, objects; did you mean bytes?"));
  EXPECT_THAT(said({"resync", "a.h5", "--from", "0"}),
              HasSubstr("'0' is not one of local, remote"));
  EXPECT_THAT(said({"exec", "--tick", "1x", "true"}), HasSubstr("--tick: '1x' is not a duration"));
  EXPECT_THAT(said({"ls", "--timeout", "0"}), HasSubstr("'0' is no number from 0.1 to 3600"));
  EXPECT_THAT(said({"ls", "--frob"}), Not(HasSubstr("did you mean")));
  EXPECT_THAT(said({"tag", "a.h5@1"}), HasSubstr("is missing; write h5mirror tag [OPTIONS] "));
}

TEST_F(VerbsTest, EachVerbsHelpHasAnExampleThatItsFlagsAllow) {
  const std::vector<std::string> verbs = VerbsOf(RunBare({"--help"}).out);
  ASSERT_GE(verbs.size(), 23u);
  for (const std::string& verb : verbs) {
    const Result help = RunBare({verb, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, Not(HasSubstr("unknown verb or flag"))) << verb;
    const size_t at = help.out.rfind("\nExample");
    ASSERT_NE(at, std::string::npos) << help.out;
    const std::vector<std::string> lines =
        absl::StrSplit(help.out.substr(at + 1), '\n', absl::SkipWhitespace());
    ASSERT_GE(lines.size(), 2u) << verb;
    for (size_t i = 1; i < lines.size(); ++i) {
      EXPECT_THAT(lines[i], StartsWith("  h5mirror " + verb));
      const std::vector<std::string> words = absl::StrSplit(lines[i], absl::ByAnyChar(" ="));
      for (const std::string& word : words) {
        if (word == "--") break;
        if (!absl::StartsWith(word, "-")) continue;
        EXPECT_THAT(help.out.substr(0, at), HasSubstr(word)) << lines[i];
      }
    }
  }
}

TEST_F(VerbsTest, HelpOfAVerb) {
  EXPECT_EQ(RunBare({"help", "log"}).out, RunBare({"log", "--help"}).out);
  EXPECT_EQ(RunBare({"help"}).out, RunBare({"--help"}).out);
  EXPECT_THAT(RunBare({"--help"}).out, HasSubstr("h5mirror help VERB"));
  EXPECT_EQ(RunBare({"help", "dance"}).code, 2);
}

TEST_F(VerbsTest, AServerThatIsAwayIsFour) {
  const Result result = RunBare({"--server", "127.0.0.1:1", "--timeout", "1", "ls"});
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.err, HasSubstr("127.0.0.1:1"));
}

TEST_F(VerbsTest, LsPagesThroughAllFiles) {
  for (int i = 0; i < 25; ++i) server_.AddVersion(StrCat("d/f", 100 + i), "x");
  server_.AddVersion("other", "x");
  EXPECT_EQ(Run({"ls", "--json"}).json()["files"].size(), 26u);
  EXPECT_EQ(Run({"ls", "d", "--json"}).json()["files"].size(), 25u);
  const Json some = Run({"ls", "-n", "3", "--json"}).json();
  EXPECT_EQ(some["files"].size(), 3u);
  EXPECT_EQ(some["complete"], false);
  EXPECT_THAT(Run({"ls"}).out, HasSubstr("d/f124\n"));
}

TEST_F(VerbsTest, LsLongShowsVersionsAndWriters) {
  server_.AddVersion("a.h5", "x");
  server_.AddVersion("a.h5", "xy");
  server_.SetLease("a.h5", "sim.x");
  const Json file = Run({"ls", "-l", "--json"}).json()["files"][0];
  EXPECT_EQ(file["version_count"], 2);
  EXPECT_EQ(file["lease"]["program"], "sim.x");
  EXPECT_THAT(Run({"ls", "-l"}).out, HasSubstr("sim.x@node7"));
}

TEST_F(VerbsTest, LogIsNewestFirstAndMarksUnverifiedUsers) {
  server_.AddVersion("a.h5", "x", "first");
  server_.AddVersion("a.h5", "xy", "second\033[2J");
  const Result text = Run({"log", "a.h5"});
  EXPECT_THAT(text.out, HasSubstr("ada (unverified)"));
  EXPECT_THAT(text.out, Not(HasSubstr("\033")));
  EXPECT_LT(text.out.find("second"), text.out.find("first"));
  const Json versions = Run({"--json", "log", "a.h5", "-n", "1"}).json()["versions"];
  ASSERT_EQ(versions.size(), 1u);
  EXPECT_EQ(versions[0]["version"], 2);
  EXPECT_EQ(versions[0]["user_verified"], false);
  EXPECT_THAT(versions[0]["time"].get<std::string>(), testing::EndsWith("Z"));
}

TEST_F(VerbsTest, LogShowsTagAndCommentAt80Columns) {
  const std::string comment = "calibration was wrong, see notebook 12 page 4";
  server_.AddVersion("a.h5", std::string(3 << 20, 'x'), comment);
  ASSERT_EQ(Run({"tag", "a.h5@1", "published"}).code, 0);
  const Result narrow = RunOnTerminal({"log", "a.h5"});
  EXPECT_THAT(narrow.out, HasSubstr("published"));
  EXPECT_THAT(narrow.out, HasSubstr("calibration was wrong, see note"));
  for (const absl::string_view line : absl::StrSplit(narrow.out, '\n')) {
    EXPECT_LE(DisplayWidth(ToStd(line)), 80u + std::string_view("\033[1m\033[0m").size()) << line;
  }
  // A pipe has all.
  const Result piped = Run({"log", "a.h5"});
  EXPECT_THAT(piped.out, HasSubstr(comment));
  EXPECT_THAT(piped.out, HasSubstr("ada (unverified)"));
  EXPECT_LT(piped.out.find("COMMENT"), piped.out.find("SIZE"));
}

TEST_F(VerbsTest, WhatDoesNotExistIsThree) {
  server_.AddVersion("a.h5", "x");
  EXPECT_EQ(Run({"log", "b.h5"}).code, 3);
  EXPECT_EQ(Run({"status", "b.h5"}).code, 3);
  EXPECT_EQ(Run({"export", "a.h5@7", Path("o")}).code, 3);
  EXPECT_EQ(Run({"export", "a.h5@latest-1", Path("o")}).code, 3);
  EXPECT_EQ(Run({"log", Path("no-record.h5")}).code, 3);
}

TEST_F(VerbsTest, StatusDescribesServerAndFile) {
  server_.AddVersion("a.h5", "x");
  EXPECT_EQ(Run({"status", "--json"}).json()["server_version"], "0.0-fake");
  EXPECT_THAT(Run({"status"}).out,
              HasSubstr("\nrights at most: read, write, restore, delete, operate\n"));
  const Json file = Run({"status", "a.h5", "--json"}).json();
  EXPECT_EQ(file["newest_version"]["version"], 1);
  EXPECT_TRUE(file["lease"].is_null());
  EXPECT_EQ(Run({"status", "a.h5", "--wait=5"}).code, 0);
  EXPECT_EQ(Run({"status", "--wait", "a.h5"}).code, 0);
}

TEST_F(VerbsTest, ALongListTellsWritersAndRecentBytesToPrograms) {
  server_.AddVersion("a.h5", "x");
  const Json file = Run({"ls", "-l", "--json"}).json()["files"][0];
  EXPECT_EQ(file["last_writer"]["user"], file["newest_version"]["user"]);
  EXPECT_EQ(file["last_writer"]["is_writing"], false);
  EXPECT_EQ(file["recent_writes"]["received_bytes"], (Json{0, 512}));
  EXPECT_FALSE(Run({"ls", "--json"}).json()["files"][0].contains("last_writer"))
      << "a plain list looks into no file";
}

TEST_F(VerbsTest, DoctorTellsTheRightsAsAtMost) {
  EXPECT_THAT(Run({"doctor", "--no-scratch"}).out,
              HasSubstr(": at most read, write, restore, delete, operate\n"));
}

TEST_F(VerbsTest, StatusTellsTheCallersRightsToTheFile) {
  server_.AddVersion("a.h5", "x");
  server_.SetRights({"read", "write"}, "a.h5");
  EXPECT_THAT(Run({"status", "a.h5"}).out, HasSubstr("\nrights:       read, write\n"));
  EXPECT_EQ(Run({"status", "a.h5", "--json"}).json()["rights"], (Json{"read", "write"}));
  EXPECT_EQ(Run({"status", "--json"}).json()["rights"].size(), 5u) << "of the server as a whole";
}

TEST_F(VerbsTest, ExportWritesTheVersionWithItsHoles) {
  std::string content(8 << 20, '\0');
  content.replace(5 << 20, 4, "data");
  server_.AddVersion("a.h5", content);
  server_.AddVersion("a.h5", "newer");
  ASSERT_EQ(Run({"export", "a.h5@1", Path("out.h5")}).code, 0);
  EXPECT_EQ(Read(Path("out.h5")), content);
  struct stat info = {};
  stat(Path("out.h5").c_str(), &info);
  EXPECT_LT(info.st_blocks * 512, 4 << 20);
  EXPECT_EQ(Run({"export", "a.h5@latest", "-"}).out, "newer");
  EXPECT_EQ(Run({"export", "a.h5@latest-1", "-"}).out, content);
}

TEST_F(VerbsTest, ExportReplacesOnlyWhenTold) {
  server_.AddVersion("a.h5", "new");
  Write("out.h5", "old");
  const Result refused = Run({"export", "a.h5@1", Path("out.h5")});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("--force"));
  EXPECT_EQ(Read(Path("out.h5")), "old");
  EXPECT_EQ(Run({"export", "a.h5@1", Path("out.h5"), "--force"}).code, 0);
  EXPECT_EQ(Read(Path("out.h5")), "new");
}

TEST_F(VerbsTest, ExportOntoADirectoryNamesAFileInIt) {
  server_.AddVersion("d/a.h5", "new");
  std::filesystem::create_directory(Path("out"));
  for (const char* force : {"--json", "--force"}) {
    const Result refused = Run({"export", "d/a.h5@1", Path("out"), force});
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err, HasSubstr("is a directory: name a file, such as " + Path("out/a.h5")));
  }
}

TEST_F(VerbsTest, DamagedBytesAreSixAndLeaveNoFile) {
  server_.AddVersion("a.h5", "content");
  server_.DamageReads();
  const Result result = Run({"export", "a.h5@1", Path("out.h5")});
  EXPECT_EQ(result.code, 6);
  EXPECT_THAT(result.err, HasSubstr("checksum 0x"));
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(VerbsTest, RollbackMakesANewVersion) {
  server_.AddVersion("a.h5", "one");
  server_.AddVersion("a.h5", "two");
  const Json result = Run({"rollback", "a.h5@1", "-m", "bad run", "--json"}).json();
  EXPECT_EQ(result["version"]["version"], 3);
  EXPECT_EQ(result["version"]["comment"], "bad run");
  EXPECT_EQ(server_.file("a.h5").contents.back(), "one");
}

TEST_F(VerbsTest, RollbackUnderAWriterIsRefusedUnlessTheLeaseIsRevoked) {
  server_.AddVersion("a.h5", "one");
  server_.SetLease("a.h5", "sim.x");
  const Result refused = Run({"rollback", "a.h5@1"});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("--revoke-lease"));
  EXPECT_EQ(Run({"rollback", "a.h5@1", "--revoke-lease"}).code, 0);
}

}  // namespace
}  // namespace h5mirror::tools
