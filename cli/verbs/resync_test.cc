// `h5mirror resync`: what differs is sent, what loses stays a version.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dirty_map.h"
#include "base/hex.h"
#include "base/local_record.h"
#include "cli/testing/cli_test_base.h"
#include "sync/local_file.h"

namespace h5mirror::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kPage = 4096;
constexpr size_t kMib = 1 << 20;

class ResyncTest : public CliTest {
 protected:
  Json Resync(std::vector<std::string> flags = {}) {
    flags.insert(flags.begin(), {"resync", Path("a.h5"), "--json"});
    const Result result = Run(flags);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.code == 0 ? result.json()["files"][0] : Json();
  }
  std::string Head() { return server_.file("a.h5").contents.back(); }
  size_t VersionCount() { return server_.file("a.h5").versions.size(); }
  // As a run of --from remote leaves it that is cut short after it.
  void KeepLocalSide(const std::string& local, int right) {
    const v1::Origin here = *LocalOrigin(Path("a.h5"));
    server_.AddVersion("a.h5", local,
                       "local side of " + here.host() + ":" + here.path() + ", not kept: version " +
                           std::to_string(right) + " comes back");
    server_.SetOrigin("a.h5", here);
  }
  void BreakCommits() {
    server_.On("Barrier", [] {
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the connection is lost");
    });
  }
  void SetState(RecordState state) {
    LocalRecord record = *ReadLocalRecord(Path("a.h5"));
    record.state = state;
    record.stat = *StatFile(Path("a.h5"));
    ASSERT_TRUE(WriteLocalRecord(Path("a.h5"), record).ok());
  }
};

TEST_F(ResyncTest, WhatIsLevelIsNotRead) {
  Pushed(3 * kMib);
  const Json json = Resync();
  EXPECT_EQ(json["action"], "unchanged");
  EXPECT_EQ(json["digest_bytes"], 0);
}

TEST_F(ResyncTest, OnlyDifferingPagesAreSent) {
  Pushed(10 * kMib);
  for (const size_t page : {300, 301, 700, 2000}) Poke(page * kPage + 17, "changed");
  const Json json = Resync({"--from", "local", "-m", "by hand"});
  EXPECT_EQ(json["action"], "sent");
  EXPECT_EQ(json["differing_bytes"], 4 * kPage);
  EXPECT_EQ(json["sent_bytes"], 4 * kPage);
  EXPECT_LT(json["digest_bytes"].get<size_t>(), 20'000u);
  EXPECT_EQ(Head(), Read(Path("a.h5")));
  EXPECT_EQ(VersionCount(), 2u);
  EXPECT_EQ(server_.file("a.h5").generation, 1);
  EXPECT_EQ(server_.file("a.h5").versions.back().comment(), "resync: by hand");
  EXPECT_EQ(ReadLocalRecord(Path("a.h5"))->state, RecordState::kClean);
  EXPECT_EQ(Resync()["action"], "unchanged");
}

TEST_F(ResyncTest, WhatIsUncertainIsTheUsersToDecide) {
  const std::string before = Pushed(2 * kMib);
  Poke(5000, "changed outside");
  const Result refused = Run({"resync", Path("a.h5")});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("differ in 4 KiB"), HasSubstr("changed since"),
                    HasSubstr("version 1"), HasSubstr("--from local"), HasSubstr("--from remote")));
  EXPECT_EQ(Head(), before);
}

TEST_F(ResyncTest, AFileThatIsOnlyBehindIsSentUnasked) {
  Pushed(2 * kMib);
  Poke(kMib, "written while the server was away");
  SetState(RecordState::kBehind);
  EXPECT_EQ(Resync()["action"], "sent");
  EXPECT_EQ(Head(), Read(Path("a.h5")));
}

TEST_F(ResyncTest, AFileThatIsBehindIsNotSentOverWhatOthersWrote) {
  Pushed(2 * kMib);
  Poke(kMib, "written while the server was away");
  SetState(RecordState::kBehind);
  server_.AddVersion("a.h5", "theirs");
  EXPECT_EQ(Run({"resync", Path("a.h5")}).code, 5);
  EXPECT_EQ(Head(), "theirs");
}

TEST_F(ResyncTest, TheRecordOfEqualFilesIsMended) {
  Pushed(2 * kMib);
  SetState(RecordState::kDiverged);
  const Json json = Resync();
  EXPECT_EQ(json["action"], "equal");
  EXPECT_EQ(json["sent_bytes"], 0);
  EXPECT_EQ(ReadLocalRecord(Path("a.h5"))->state, RecordState::kClean);
  EXPECT_EQ(VersionCount(), 1u);
}

TEST_F(ResyncTest, AnEqualFileOfAnotherOriginIsForAdopt) {
  const std::string content = Hdf5Bytes(kMib);
  server_.AddVersion("a.h5", content);
  Write("a.h5", content);
  const Result refused = Run({"resync", Path("a.h5"), "--name", "a.h5"});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("h5mirror adopt"));
  EXPECT_EQ(Resync({"--name", "a.h5", "--from", "local"})["action"], "equal");
  EXPECT_EQ(server_.file("a.h5").origin.path(), std::filesystem::canonical(Path("a.h5")));
}

TEST_F(ResyncTest, SizesFollow) {
  std::string content = Pushed(5 * kMib + 1000);
  const auto check = [this](const std::string& bytes) {
    Write("a.h5", bytes);
    EXPECT_EQ(Resync({"--from", "local", "--any"})["action"], "sent");
    EXPECT_EQ(Head(), bytes);
  };
  check(content + std::string(3 * kMib, 'x'));                        // longer
  check(content.substr(0, 2 * kMib + 77));                            // shorter
  check(content.substr(0, 2 * kMib + 77) + std::string(kMib, '\0'));  // longer by zeros
  check(content.substr(0, 100));
  check(std::string());
  check(content);
}

TEST_F(ResyncTest, HolesAreNeitherReadNorSent) {
  std::string content = Pushed(kMib);
  ASSERT_EQ(truncate(Path("a.h5").c_str(), int64_t{64} << 20), 0);
  Poke((63 << 20) + 5, "end");
  const Json json = Resync({"--from", "local", "--any"});
  EXPECT_EQ(json["sent_bytes"], kPage);
  EXPECT_EQ(Head(), Read(Path("a.h5")));
}

TEST_F(ResyncTest, WhatTheServerHasNotGotIsUploaded) {
  Write("a.h5", Hdf5Bytes(kMib));
  EXPECT_EQ(Resync({"--name", "a.h5"})["action"], "uploaded");
  EXPECT_EQ(Head(), Read(Path("a.h5")));
}

TEST_F(ResyncTest, ADryRunChangesNothing) {
  const std::string before = Pushed(2 * kMib);
  Poke(kMib, "changed");
  const Json json = Resync({"--from", "local", "--dry-run"});
  EXPECT_EQ(json["sent_bytes"], kPage);
  EXPECT_EQ(Head(), before);
  EXPECT_EQ(Resync({"--from", "remote", "--dry-run"})["action"], "fetched");
  EXPECT_EQ(VersionCount(), 1u);
}

TEST_F(ResyncTest, TheRemoteSideWinsAndTheLocalOneIsAVersion) {
  const std::string before = Pushed(4 * kMib);
  ASSERT_EQ(chmod(Path("a.h5").c_str(), 0640), 0);
  Poke(kMib + 9, "local work");
  const std::string local = Read(Path("a.h5"));
  const Json json = Resync({"--from", "remote"});
  EXPECT_EQ(json["action"], "fetched");
  EXPECT_EQ(json["received_bytes"], kPage);
  EXPECT_EQ(Read(Path("a.h5")), before);
  EXPECT_EQ(Head(), before);
  ASSERT_EQ(json["kept_version"], 2);
  EXPECT_EQ(server_.file("a.h5").contents[1], local);
  EXPECT_THAT(server_.file("a.h5").versions[1].comment(),
              AllOf(HasSubstr("local side of"), HasSubstr("not kept")));
  EXPECT_EQ(ReadLocalRecord(Path("a.h5"))->state, RecordState::kClean);
  EXPECT_EQ(ReadLocalRecord(Path("a.h5"))->cut, server_.file("a.h5").versions.back().cut());
  struct stat info = {};
  ASSERT_EQ(stat(Path("a.h5").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0640u);
  EXPECT_EQ(Resync()["action"], "unchanged");
}

TEST_F(ResyncTest, ARunThatWasCutShortGoesOn) {
  const std::string before = Pushed(2 * kMib);
  Poke(kMib, "local work");
  const std::string local = Read(Path("a.h5"));
  KeepLocalSide(local, 1);
  EXPECT_EQ(Resync({"--from", "remote"})["kept_version"], 2);
  EXPECT_EQ(Read(Path("a.h5")), before);
  EXPECT_EQ(Head(), before);
  EXPECT_EQ(VersionCount(), 3u);
}

TEST_F(ResyncTest, TheSideThatIsRightStaysSoHoweverOftenARunIsCutShort) {
  const std::string before = Pushed(2 * kMib);
  Poke(kMib, "local work");
  KeepLocalSide(Read(Path("a.h5")), 1);
  Poke(kMib, "more of it");
  server_.On("RollbackVersion",
             [] { return grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is stopped"); });
  EXPECT_NE(Run({"resync", "--from", "remote", Path("a.h5")}).code, 0);
  ASSERT_EQ(VersionCount(), 3u);
  server_.On("RollbackVersion", [] { return grpc::Status::OK; });
  EXPECT_EQ(Resync({"--from", "remote"})["kept_version"], 3);
  EXPECT_EQ(Read(Path("a.h5")), before);
  EXPECT_EQ(Head(), before);
}

TEST_F(ResyncTest, ARunThatWasCutShortStopsWhereTheRightVersionIsGone) {
  Pushed(2 * kMib);
  Poke(kMib, "local work");
  const std::string local = Read(Path("a.h5"));
  KeepLocalSide(local, 1);
  server_.On("GetVersion",
             [] { return grpc::Status(grpc::StatusCode::NOT_FOUND, "no version 1"); });
  const Result refused = Run({"resync", "--from", "remote", Path("a.h5")});
  EXPECT_EQ(refused.code, 5) << refused.err;
  EXPECT_THAT(refused.err, AllOf(HasSubstr("version 1, which"), HasSubstr("h5mirror rollback"),
                                 HasSubstr("--from local")));
  EXPECT_EQ(Read(Path("a.h5")), local);
  EXPECT_EQ(VersionCount(), 2u);
}

TEST_F(ResyncTest, AnotherFilesLocalSideIsAVersionAsAnyOther) {
  const std::string before = Pushed(2 * kMib);
  for (const char* comment : {"local side of node9:/x.h5, not kept: version 1 comes back",
                              ", not kept: version x comes"}) {
    server_.AddVersion("a.h5", before + comment, comment);
    Resync({"--from", "remote"});
    EXPECT_EQ(Read(Path("a.h5")), before + comment);
  }
}

TEST_F(ResyncTest, ASymbolicLinkStaysOneAndItsFileIsReplaced) {
  const std::string before = Pushed(2 * kMib);
  Poke(kMib, "local work");
  std::filesystem::create_directory(Path("links"));
  std::filesystem::create_symlink("../a.h5", Path("links/b.h5"));
  const Result result = Run({"resync", "--from", "remote", Path("links/b.h5")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(std::filesystem::is_symlink(Path("links/b.h5")));
  EXPECT_EQ(Read(Path("a.h5")), before);
  EXPECT_FALSE(std::filesystem::exists(Path("links/b.h5.h5m")));
  EXPECT_EQ(ReadLocalRecord(Path("a.h5"))->stat, *StatFile(Path("a.h5")));
}

TEST_F(ResyncTest, NobodyOpensTheNewFileBeforeItsRecordSaysWhatItIs) {
  Pushed(2 * kMib);
  Poke(kMib, "local work");
  int locked = 0;
  server_.On("AdoptFile", [&] {
    const int fd = open(Path("a.h5").c_str(), O_RDWR);
    locked = flock(fd, LOCK_EX | LOCK_NB);
    close(fd);
    return grpc::Status::OK;
  });
  Resync({"--from", "remote"});
  EXPECT_EQ(locked, -1);
  const int fd = open(Path("a.h5").c_str(), O_RDWR);
  EXPECT_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
  close(fd);
  EXPECT_EQ(ReadLocalRecord(Path("a.h5"))->stat, *StatFile(Path("a.h5")));
}

TEST_F(ResyncTest, ACommitThatMayNotHaveArrivedLeavesWhatTheServerThenLacks) {
  Pushed(2 * kMib);
  Poke(kMib + 5, "local work");
  ASSERT_EQ(truncate(Path("a.h5").c_str(), kMib + kPage), 0);
  BreakCommits();
  EXPECT_NE(Run({"resync", "--from", "local", "--any", Path("a.h5")}).code, 0);
  const LocalRecord record = *ReadLocalRecord(Path("a.h5"));
  EXPECT_EQ(record.state, RecordState::kBehind);
  const auto map = FindDirtyMap(Path("a.h5"), record, *StatFile(Path("a.h5")));
  ASSERT_TRUE(map.has_value());
  // Either way the next session is known: by the cut before, or by the session of the commit.
  EXPECT_EQ(map->claim, DirtyMap::Claim::kResume);
  EXPECT_EQ(map->base_cut, server_.file("a.h5").versions.back().cut());
  EXPECT_EQ(map->session_id, record.pending_session_id);
  EXPECT_EQ(map->truncate, kMib + kPage);
  EXPECT_EQ(map->extents.ToVector(), (std::vector<Extent>{{kMib, kPage}}));
}

TEST_F(ResyncTest, APushThatMayNotHaveArrivedKeepsTheMap) {
  Pushed(2 * kMib);
  Poke(kMib + 5, "written while the server was away");
  SetState(RecordState::kBehind);
  LocalRecord record = *ReadLocalRecord(Path("a.h5"));
  DirtyMap before;
  before.id[0] = 1;
  before.file_id = record.file_id;
  before.claim = DirtyMap::Claim::kContinue;
  before.base_cut = record.cut;
  before.stat = record.stat;
  before.extents.Add({kMib, kPage});
  ASSERT_TRUE(WriteDirtyMap(Path("a.h5"), before).ok());
  record.dirty_map_id = before.id;
  ASSERT_TRUE(WriteLocalRecord(Path("a.h5"), record).ok());
  BreakCommits();
  EXPECT_NE(Run({"push", Path("a.h5")}).code, 0);
  record = *ReadLocalRecord(Path("a.h5"));
  const auto map = FindDirtyMap(Path("a.h5"), record, *StatFile(Path("a.h5")));
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->claim, DirtyMap::Claim::kResume);
  EXPECT_EQ(map->base_cut, before.base_cut);
  EXPECT_EQ(map->session_id, record.pending_session_id);
  EXPECT_EQ(map->extents.ToVector(), before.extents.ToVector());
}

TEST_F(ResyncTest, ALongerLocalFileIsCutByTheRemoteSide) {
  const std::string before = Pushed(kMib + 500);
  Write("a.h5", before + std::string(3 * kMib, 'x'));
  Resync({"--from", "remote"});
  EXPECT_EQ(Read(Path("a.h5")), before);
  Write("a.h5", before.substr(0, 700));
  Resync({"--from", "remote"});
  EXPECT_EQ(Read(Path("a.h5")), before);
}

TEST_F(ResyncTest, IsRefusedWhileSomebodyWrites) {
  Pushed(kMib);
  Poke(9000, "changed");
  const int fd = open(Path("a.h5").c_str(), O_RDWR);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);
  EXPECT_EQ(Run({"resync", "--from", "local", Path("a.h5")}).code, 5);
  close(fd);
  server_.SetLease("a.h5", "sim.x");
  const Result refused = Run({"resync", "--from", "local", Path("a.h5")});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("sim.x"));
}

TEST_F(ResyncTest, WhatWasNotClosedCleanlyIsRefusedUnlessTold) {
  Pushed(kMib);
  Poke(9000, "torn");
  SetState(RecordState::kOpen);
  const Result refused = Run({"resync", "--from", "local", Path("a.h5")});
  EXPECT_EQ(refused.code, 5);
  EXPECT_THAT(refused.err, HasSubstr("--any"));
  EXPECT_EQ(Resync({"--from", "local", "--any"})["action"], "sent");
}

TEST_F(ResyncTest, FromIsLocalOrRemote) {
  Pushed(kMib);
  EXPECT_EQ(Run({"resync", "--from", "both", Path("a.h5")}).code, 2);
}

}  // namespace
}  // namespace h5mirror::tools
