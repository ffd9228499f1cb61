// push, adopt and recover: the verbs that take part in which side is right.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/local_record.h"
#include "cli/testing/cli_test_base.h"

namespace h5mirror::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class LocalVerbsTest : public CliTest {
 protected:
  // The files beside `name` whose names hold `part`.
  std::vector<std::string> Beside(const std::string& part) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      if (absl::StrContains(entry.path().filename().string(), part)) {
        found.push_back(entry.path().string());
      }
    }
    return found;
  }
};

TEST_F(LocalVerbsTest, PushUploadsThenSkipsThenReplaces) {
  const std::string first = Hdf5Bytes(3 << 20);
  Write("a.h5", first);
  Json json = Run({"push", Path("a.h5"), "--name", "x/a.h5", "-m", "hello", "--json"}).json();
  EXPECT_EQ(json["files"][0]["action"], "uploaded");
  EXPECT_EQ(server_.file("x/a.h5").contents.back(), first);
  EXPECT_EQ(server_.file("x/a.h5").versions.back().comment(), "hello");
  EXPECT_EQ(Run({"push", Path("a.h5"), "--json"}).json()["files"][0]["action"], "unchanged");
  const std::string second = Hdf5Bytes(2 << 20, 'q');
  Write("a.h5", second);
  EXPECT_EQ(Run({"push", Path("a.h5"), "--json"}).json()["files"][0]["action"], "replaced");
  EXPECT_EQ(server_.file("x/a.h5").contents.back(), second);
  EXPECT_EQ(server_.file("x/a.h5").versions.size(), 2u);
}

TEST_F(LocalVerbsTest, PushWritesTheRecordOfACleanClose) {
  Write("a.h5", Hdf5Bytes(1 << 20));
  ASSERT_EQ(Run({"push", Path("a.h5"), "--name", "a.h5"}).code, 0);
  const auto record = ReadLocalRecord(Path("a.h5"));
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->state, RecordState::kClean);
  EXPECT_EQ(record->cut, server_.file("a.h5").versions.back().cut());
  EXPECT_EQ(record->stat, *StatFile(Path("a.h5")));
  EXPECT_EQ(record->pending_seq, 0u);
  EXPECT_EQ(Run({"status", Path("a.h5"), "--json"}).json()["local"]["standing"], "level");
}

TEST_F(LocalVerbsTest, PushKeepsHolesAndZeros) {
  std::string content = Hdf5Bytes(1 << 20);
  Write("a.h5", content);
  ASSERT_EQ(truncate(Path("a.h5").c_str(), 64 << 20), 0);
  const Json json = Run({"push", Path("a.h5"), "--name", "a.h5", "--json"}).json();
  EXPECT_LT(json["files"][0]["sent_bytes"].get<int64_t>(), 8 << 20);
  content.resize(64 << 20);
  EXPECT_EQ(server_.file("a.h5").contents.back(), content);
}

TEST_F(LocalVerbsTest, PushRefusesAStrangersFileUnlessTold) {
  server_.AddVersion("a.h5", "theirs");
  Write("a.h5", Hdf5Bytes(4096));
  const Result refused = Run({"push", Path("a.h5"), "--name", "a.h5"});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("h5mirror adopt"));
  EXPECT_EQ(server_.file("a.h5").versions.size(), 1u);
  EXPECT_EQ(Run({"push", Path("a.h5"), "--name", "a.h5", "--replace"}).code, 0);
  EXPECT_EQ(server_.file("a.h5").versions.size(), 2u);
}

TEST_F(LocalVerbsTest, PushRefusesWhatAProgramWrites) {
  Write("a.h5", Hdf5Bytes(4096));
  const int fd = open(Path("a.h5").c_str(), O_RDWR);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  const Result refused = Run({"push", Path("a.h5"), "--name", "a.h5"});
  close(fd);
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("a program has it open"));
  EXPECT_FALSE(server_.has("a.h5"));
}

TEST_F(LocalVerbsTest, PushRefusesWhatIsNotAClosedHdf5FileUnlessTold) {
  Write("a.txt", "text");
  Write("b.h5", Hdf5Bytes(8192).substr(0, 5000));
  EXPECT_THAT(Run({"push", Path("a.txt"), "--name", "a"}).err, HasSubstr("not an HDF5 file"));
  EXPECT_THAT(Run({"push", Path("b.h5"), "--name", "b"}).err, HasSubstr("shorter than"));
  EXPECT_EQ(Run({"push", Path("b.h5"), "--name", "b"}).code, 5);
  EXPECT_EQ(Run({"push", Path("a.txt"), "--name", "a", "--any"}).code, 0);
  EXPECT_EQ(server_.file("a").contents.back(), "text");
}

TEST_F(LocalVerbsTest, PushRefusesWhatACrashedWriterLeft) {
  Write("a.h5", Hdf5Bytes(4096));
  ASSERT_EQ(Run({"push", Path("a.h5"), "--name", "a.h5"}).code, 0);
  LocalRecord record = *ReadLocalRecord(Path("a.h5"));
  record.state = RecordState::kOpen;
  ASSERT_TRUE(WriteLocalRecord(Path("a.h5"), record).ok());
  const Result refused = Run({"push", Path("a.h5")});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("h5mirror recover"));
  EXPECT_EQ(Run({"push", Path("a.h5"), "--any"}).code, 0);
}

TEST_F(LocalVerbsTest, PushRefusesAFileWithItsHistoryBesideIt) {
  Write("a.h5", Hdf5Bytes(1 << 20));
  std::filesystem::create_directory(Path("a.h5.h5m"));
  Write("a.h5.h5m/index", "");
  const auto refused = Run({"push", Path("a.h5"), "--name", "a.h5"});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("has its history beside it"));
}

TEST_F(LocalVerbsTest, PushTakesATreeAndGoesOnAfterAFileThatFails) {
  Write("t/a.h5", Hdf5Bytes(4096));
  Write("t/sub/b.h5", Hdf5Bytes(4096));
  Write("t/bad.h5", Hdf5Bytes(8192).substr(0, 5000));
  Write("t/notes.txt", "text");
  EXPECT_EQ(Run({"push", Path("t")}).code, 2);
  const Result result = Run({"push", "-r", Path("t"), "--root", Path("t"), "--json"});
  EXPECT_EQ(result.code, 5);
  EXPECT_EQ(result.json()["files"].size(), 3u);
  EXPECT_TRUE(server_.has("a.h5"));
  EXPECT_TRUE(server_.has("sub/b.h5"));
  EXPECT_FALSE(server_.has("bad.h5"));
}

TEST_F(LocalVerbsTest, PushOfATreeSumsUp) {
  for (const char* name : {"t/new.h5", "t/changed.h5", "t/same.h5", "t/gone.h5"}) {
    Write(name, Hdf5Bytes(40960));
  }
  ASSERT_EQ(
      Run({"push", Path("t/changed.h5"), Path("t/same.h5"), Path("t/gone.h5"), "--root", Path("t")})
          .code,
      0);
  std::filesystem::remove(Path("t/gone.h5"));
  Write("t/changed.h5", Hdf5Bytes(40960, 'q'));
  Write("t/notes.txt", "text");
  Write("t/bad.h5", Hdf5Bytes(8192).substr(0, 5000));
  const std::vector<std::string> push{"push", "-r", Path("t"), "--root", Path("t")};
  std::vector<std::string> dry = push, quiet = push, json = push;
  dry.push_back("--dry-run");
  EXPECT_THAT(Run(dry).out,
              HasSubstr("4 files would be: 1 new, 1 changed, 1 unchanged, 1 failed, "));
  json.insert(json.end(), {"--json", "--dry-run"});
  const Json summary = Run(json).json()["summary"];
  EXPECT_EQ(summary["new"], 1);
  EXPECT_EQ(summary["skipped"], 1);
  EXPECT_EQ(summary["gone"], Json::array({Path("t/gone.h5")}));
  const Result result = Run(push);
  EXPECT_EQ(result.code, 5);
  EXPECT_THAT(result.out,
              HasSubstr("4 files: 1 new, 1 changed, 1 unchanged, 1 failed, 1 skipped (not "
                        "HDF5), 1 gone here (the server keeps them); "));
  EXPECT_THAT(result.out, HasSubstr(" sent in "));
  quiet.push_back("-q");
  const Result silent = Run(quiet);
  EXPECT_EQ(silent.out, "");
  EXPECT_THAT(silent.err, HasSubstr("bad.h5")) << "errors are told";
  EXPECT_TRUE(server_.has("gone.h5"));
}

TEST_F(LocalVerbsTest, PushOfManyShowsHowFarAllOfThemHaveCome) {
  for (const char* name : {"t/a.h5", "t/b.h5"}) Write(name, Hdf5Bytes(3 << 20));
  // Each barrier takes long enough for a line.
  server_.On("Barrier", [] {
    absl::SleepFor(absl::Milliseconds(600));
    return grpc::Status::OK;
  });
  const Result result = RunOnTerminal({"push", "-r", "-j", "1", Path("t"), "--root", Path("t")});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("1 of 2 files  3 MiB of 6 MiB (50 %)  "));
  EXPECT_THAT(result.err, HasSubstr(" left  " + Path("t/").substr(0, 10)));
}

TEST_F(LocalVerbsTest, PushTakesSeveralFilesAtOnce) {
  constexpr int kFiles = 4;
  for (int i = 0; i < kFiles; ++i) Write(absl::StrCat("t/", i, ".h5"), Hdf5Bytes(4096));
  std::atomic<int> come = 0;
  absl::Notification all_have_come;
  server_.On("Barrier", [&] {
    if (++come == kFiles) all_have_come.Notify();
    // None is answered before the last one has come.
    return all_have_come.WaitForNotificationWithTimeout(absl::Seconds(60))
               ? grpc::Status::OK
               : grpc::Status(grpc::StatusCode::INTERNAL, "alone");
  });
  const Result result = Run({"push", "-r", Path("t"), "--root", Path("t")});
  EXPECT_EQ(result.code, 0) << result.err;
  size_t last = 0;
  for (int i = 0; i < kFiles; ++i) {
    const size_t at = result.out.find(absl::StrCat(i, ".h5 as "));
    ASSERT_NE(at, std::string::npos) << result.out;
    EXPECT_GE(at, last) << "they are told in their order";
    last = at;
  }
}

TEST_F(LocalVerbsTest, APushEndsWhatAComparisonHadFound) {
  Pushed(1 << 20);
  Poke(5000, "changed");
  ASSERT_EQ(Run({"verify", "--against", Path("a.h5")}).code, 6);
  ASSERT_GT(server_.file("a.h5").check.differing_bytes(), 0);
  ASSERT_EQ(Run({"push", Path("a.h5")}).code, 0);
  EXPECT_EQ(server_.file("a.h5").check.differing_bytes(), 0);
  EXPECT_EQ(server_.file("a.h5").check.version(), 2);
  // The same of a resync, whichever side it takes.
  for (const char* side : {"local", "remote"}) {
    Poke(6000, side);
    ASSERT_EQ(Run({"verify", "--against", Path("a.h5")}).code, 6);
    ASSERT_EQ(Run({"resync", "--from", side, Path("a.h5")}).code, 0);
    EXPECT_EQ(server_.file("a.h5").check.differing_bytes(), 0) << side;
  }
}

TEST_F(LocalVerbsTest, AdoptTakesAnEqualFileAndRefusesAnother) {
  std::string content = Hdf5Bytes(3 << 20);
  server_.AddVersion("a.h5", content);
  Write("a.h5", content);
  ASSERT_EQ(Run({"adopt", Path("a.h5"), "--name", "a.h5"}).code, 0);
  EXPECT_EQ(server_.file("a.h5").origin.path(), std::filesystem::canonical(Path("a.h5")));
  EXPECT_EQ(ReadLocalRecord(Path("a.h5"))->state, RecordState::kClean);
  content[(2 << 20) + 5] ^= 1;
  Write("b.h5", content);
  const Result refused = Run({"adopt", Path("b.h5"), "--name", "a.h5"});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("at offset 2097152"));
  EXPECT_THAT(refused.err, HasSubstr("h5mirror resync --from local"));
}

TEST_F(LocalVerbsTest, AdoptNeedsAName) {
  Write("a.h5", Hdf5Bytes(4096));
  EXPECT_EQ(Run({"adopt", Path("a.h5")}).code, 2);
}

TEST_F(LocalVerbsTest, RecoverKeepsTheOldFileBesideUnderANameThatSaysWhatItIs) {
  const std::string good = Hdf5Bytes(1 << 20);
  Write("a.h5", good);
  ASSERT_EQ(Run({"push", Path("a.h5"), "--name", "a.h5"}).code, 0);
  Write("a.h5", "broken");
  const Json json = Run({"recover", Path("a.h5"), "--json"}).json();
  EXPECT_EQ(json["action"], "recovered");
  EXPECT_EQ(Read(Path("a.h5")), good);
  EXPECT_EQ(json["kept"], json["broken"]);
  EXPECT_THAT(json["kept"].get<std::string>(), StartsWith(Path("a.h5.before-recover-20")));
  EXPECT_EQ(Read(json["kept"].get<std::string>()), "broken");
  EXPECT_EQ(ReadLocalRecord(Path("a.h5"))->state, RecordState::kClean);
  EXPECT_EQ(ReadLocalRecord(Path("a.h5"))->stat, *StatFile(Path("a.h5")));
}

TEST_F(LocalVerbsTest, RecoversInOneSecondKeepAllOldFiles) {
  server_.AddVersion("a.h5", Hdf5Bytes(4096));
  for (const char seed : {'x', 'y', 'z'}) {
    Write("a.h5", Hdf5Bytes(4096, seed));
    ASSERT_EQ(Run({"recover", Path("a.h5"), "--name", "a.h5"}).code, 0);
  }
  EXPECT_EQ(Beside(".before-recover-").size(), 3u);
  // A tree that is pushed does not have them.
  EXPECT_EQ(Run({"push", "-r", Path(""), "--json"}).json()["files"].size(), 1u);
}

TEST_F(LocalVerbsTest, PushNamesAFileByTheRootOfTheConfiguration) {
  Write(".config/h5mirror/client.toml", "ack = 'none'\nroot = '" + Path("") + "'\n");
  Write("run/a.h5", Hdf5Bytes(4096));
  const Result result = Run({"push", Path("run/a.h5"), "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.json()["files"][0]["file"], "run/a.h5");
}

TEST_F(LocalVerbsTest, StatusShowsTheRecordWhileTheServerIsAway) {
  Write("a.h5", Hdf5Bytes(4096));
  ASSERT_EQ(Run({"push", Path("a.h5"), "--name", "x/a.h5"}).code, 0);
  const std::vector<std::string> away = {"--server", "127.0.0.1:1", "--timeout",
                                         "1",        "status",      Path("a.h5")};
  Result result = RunBare(away);
  EXPECT_EQ(result.code, 4);
  EXPECT_THAT(result.out, AllOf(HasSubstr("x/a.h5"), HasSubstr("closed as version 1"),
                                HasSubstr("durable:"), HasSubstr("since:")));
  EXPECT_THAT(result.err, HasSubstr("127.0.0.1:1"));
  std::vector<std::string> as_json = away;
  as_json.push_back("--json");
  result = RunBare(as_json);
  EXPECT_EQ(result.code, 4);
  EXPECT_EQ(result.json()["local"]["record"]["state"], "clean");
}

TEST_F(LocalVerbsTest, StatusSaysFirstHowTheFileStands) {
  const std::string content = Pushed(1 << 20);
  const Result level = Run({"status", Path("a.h5")});
  EXPECT_THAT(level.out, StartsWith("state:        level at version 1\nlocal: "));
  server_.SetMirrorState("a.h5", v1::MIRROR_STATE_IN_SYNC);
  Poke(5000, "changed outside");
  const Result changed = Run({"status", Path("a.h5")});
  EXPECT_THAT(changed.out,
              StartsWith("state:        the local file was changed since its last mirrored close\n"
                         "way out:      the next mirrored open that writes to it takes it in "));
  EXPECT_THAT(changed.out, Not(HasSubstr("  in sync"))) << "no line begins with what is not so";
  EXPECT_THAT(changed.out, HasSubstr("mirror:       as of the last close: in sync"));
  EXPECT_THAT(Run({"status", "a.h5"}).out, StartsWith("state:        in sync"));
}

TEST_F(LocalVerbsTest, StatusSaysFirstThatAComparisonFoundADifference) {
  Pushed(1 << 20);
  Poke(5000, "changed");
  LocalRecord record = *ReadLocalRecord(Path("a.h5"));
  record.stat = *StatFile(Path("a.h5"));  // As after bit rot: nothing has changed but bytes.
  ASSERT_TRUE(WriteLocalRecord(Path("a.h5"), record).ok());
  ASSERT_EQ(Run({"verify", "--against", Path("a.h5")}).code, 6);
  EXPECT_THAT(Run({"status", Path("a.h5")}).out,
              StartsWith("state:        the two sides differ, as a comparison found"));
}

TEST_F(LocalVerbsTest, LargeCutNumbersAreShownShort) {
  server_.SetCutNumber(1795511182385517);
  Pushed(1 << 20);
  EXPECT_EQ(ReadLocalRecord(Path("a.h5"))->cut, 1795511182385517);
  EXPECT_THAT(Run({"status", "a.h5"}).out, HasSubstr("cuts:         newest ..385517, durable and"));
  EXPECT_THAT(Run({"show", "a.h5@1"}).out, HasSubstr("cut ..385517,"));
  EXPECT_EQ(Run({"status", "a.h5", "--json"}).json()["last_cut"], 1795511182385517);
}

TEST_F(LocalVerbsTest, RecoverDryRunChangesNothing) {
  Write("a.h5", Hdf5Bytes(4096));
  ASSERT_EQ(Run({"push", Path("a.h5"), "--name", "a.h5"}).code, 0);
  Write("a.h5", "broken");
  EXPECT_EQ(Run({"recover", Path("a.h5"), "--dry-run", "--json"}).json()["action"],
            "would_recover");
  EXPECT_EQ(Read(Path("a.h5")), "broken");
  EXPECT_TRUE(Beside("before-recover-").empty());
}

TEST_F(LocalVerbsTest, RecoverDryRunSaysWhatTheRunDoes) {
  const auto both = [this](const std::vector<std::string>& more) {
    std::vector<std::string> dry{"recover", Path("a.h5"), "--dry-run"},
        run{"recover", Path("a.h5")};
    dry.insert(dry.end(), more.begin(), more.end());
    run.insert(run.end(), more.begin(), more.end());
    Result would = Run(dry);
    return std::make_pair(would, Run(run));
  };
  Pushed(3 << 20);
  // Nothing to do.
  auto [would, done] = both({});
  EXPECT_THAT(would.out, HasSubstr("a.h5 is a.h5@1 already; its record would say so"));
  EXPECT_THAT(done.out, HasSubstr("a.h5 is a.h5@1 already; its record says so now"));
  // The newest, over a file that was changed.
  Poke(5000, "changed");
  std::tie(would, done) = both({});
  EXPECT_THAT(would.out,
              HasSubstr("would recover " + Path("a.h5") + " to a.h5@1 (3 MiB); the old "));
  EXPECT_THAT(would.out, HasSubstr("would be kept as " + Path("a.h5.before-recover-TIME")));
  EXPECT_THAT(done.out,
              HasSubstr("recovered " + Path("a.h5") + " to a.h5@1 (3 MiB); the old one is"));
  // An old one: how to go on from there.
  server_.AddVersion("a.h5", "two");
  std::tie(would, done) = both({"--version", "1"});
  EXPECT_THAT(would.out, HasSubstr("already"));
  EXPECT_THAT(would.err, HasSubstr("h5mirror rollback a.h5@1 && h5mirror adopt"));
  EXPECT_EQ(would.err, done.err);
}

TEST_F(LocalVerbsTest, RecoverThatMayNotTakeAFileOverChangesNothing) {
  server_.AddVersion("a.h5", "theirs");
  v1::Origin elsewhere;
  elsewhere.set_machine_id("another");
  elsewhere.set_host("node9");
  elsewhere.set_path("/data/a.h5");
  server_.SetOrigin("a.h5", elsewhere);
  server_.SetRights({"read", "write"});
  Write("a.h5", "mine");
  for (const char* flag : {"--dry-run", "--json"}) {
    const Result refused = Run({"recover", Path("a.h5"), "--name", "a.h5", flag});
    EXPECT_EQ(refused.code, 8) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("node9:/data/a.h5"));
  }
  EXPECT_EQ(Read(Path("a.h5")), "mine");
  EXPECT_TRUE(Beside("before-recover-").empty());
}

TEST_F(LocalVerbsTest, RecoverBringsBackALostFile) {
  server_.AddVersion("a.h5", "content");
  ASSERT_EQ(Run({"recover", Path("a.h5"), "--name", "a.h5"}).code, 0);
  EXPECT_EQ(Read(Path("a.h5")), "content");
  EXPECT_EQ(server_.file("a.h5").origin.path(), std::filesystem::canonical(Path("a.h5")));
  EXPECT_EQ(Run({"recover", Path("a.h5"), "--json"}).json()["action"], "equal");
  EXPECT_TRUE(Beside("before-recover-").empty());
}

TEST_F(LocalVerbsTest, RecoverReplacesTheFileThatALinkLeadsTo) {
  const std::string good = Hdf5Bytes(1 << 20);
  Write("data/a.h5", good);
  std::filesystem::create_symlink("data/a.h5", Path("link.h5"));
  ASSERT_EQ(Run({"push", Path("link.h5"), "--name", "a.h5"}).code, 0);
  EXPECT_EQ(ReadLocalRecord(Path("data/a.h5"))->state, RecordState::kClean);
  Write("data/a.h5", "broken");
  const Json json = Run({"recover", Path("link.h5"), "--json"}).json();
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link.h5")));
  EXPECT_EQ(Read(Path("data/a.h5")), good);
  EXPECT_EQ(Read(json["broken"].get<std::string>()), "broken");
  EXPECT_EQ(ReadLocalRecord(Path("data/a.h5"))->stat, *StatFile(Path("data/a.h5")));
  // Also where the file is gone.
  std::filesystem::remove(Path("data/a.h5"));
  EXPECT_EQ(Run({"recover", Path("link.h5")}).code, 0);
  EXPECT_EQ(Read(Path("data/a.h5")), good);
  EXPECT_TRUE(Beside("link.h5.h5m").empty());
}

TEST_F(LocalVerbsTest, RecoverTellsTheServerThatItLacksNothing) {
  Write("a.h5", Hdf5Bytes(4096));
  ASSERT_EQ(Run({"push", Path("a.h5"), "--name", "a.h5"}).code, 0);
  Write("a.h5", "broken");
  // The new file is nobody's before its record says what it is.
  int locked = 0;
  server_.On("RecordCheck", [&] {
    const int fd = open(Path("a.h5").c_str(), O_RDWR);
    locked = flock(fd, LOCK_EX | LOCK_NB);
    close(fd);
    return grpc::Status::OK;
  });
  ASSERT_EQ(Run({"recover", Path("a.h5")}).code, 0);
  EXPECT_EQ(locked, -1);
  EXPECT_EQ(server_.file("a.h5").check.version(), 1);
  EXPECT_EQ(server_.file("a.h5").check.differing_bytes(), 0);
}

TEST_F(LocalVerbsTest, RecoverIsRefusedWhileSomebodyWrites) {
  server_.AddVersion("a.h5", "content");
  Write("a.h5", "local");
  const int fd = open(Path("a.h5").c_str(), O_RDWR);
  ASSERT_EQ(flock(fd, LOCK_SH), 0);
  EXPECT_EQ(Run({"recover", Path("a.h5"), "--name", "a.h5"}).code, 5);
  close(fd);
  server_.SetLease("a.h5", "sim.x");
  const Result refused = Run({"recover", Path("a.h5"), "--name", "a.h5"});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("sim.x"));
  EXPECT_EQ(Read(Path("a.h5")), "local");
}

TEST_F(LocalVerbsTest, RecoverToAnOldVersionSaysHowToGoOn) {
  server_.AddVersion("a.h5", "one");
  server_.AddVersion("a.h5", "two");
  const Result result = Run({"recover", Path("a.h5"), "--name", "a.h5", "--version", "1"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("h5mirror rollback a.h5@1"));
  EXPECT_EQ(ReadLocalRecord(Path("a.h5"))->state, RecordState::kDiverged);
}

}  // namespace
}  // namespace h5mirror::tools
