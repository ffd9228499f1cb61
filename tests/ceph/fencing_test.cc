// A client that lost its session never acks again, and its successor finds all that it acked. The
// session is ended by its uuid, as a server that takes over would do.
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/machine.h"
#include "base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onion_store/store.h"
#include "tests/ceph/ceph_place.h"

namespace {

constexpr int kNoPause = -1;
constexpr time_t kPauseSeconds = 3600;

// How often this thread still asks for the time since the boot before the process seems to have
// stood still for an hour. Each gate asks once.
thread_local int asks_before_pause = kNoPause;
thread_local int fsync_count = 0;

}  // namespace

// Both functions hide the library's.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (clock != CLOCK_BOOTTIME || asks_before_pause == kNoPause) return result;
  if (asks_before_pause == 0) {
    time->tv_sec += kPauseSeconds;
  } else {
    --asks_before_pause;
  }
  return result;
}
extern "C" int ceph_ll_fsync(ceph_mount_info* mount, Fh* handle, int data_only) {
  static const auto real =
      reinterpret_cast<decltype(&ceph_ll_fsync)>(dlsym(RTLD_NEXT, "ceph_ll_fsync"));
  ++fsync_count;
  return real(mount, handle, data_only);
}

namespace h5mirror::ceph {
namespace {

using ::testing::HasSubstr;

// "session UUID at ADDRESS"
std::string UuidOf(const std::string& session_name) {
  const std::string after = session_name.substr(session_name.find(' ') + 1);
  return after.substr(0, after.find(' '));
}

class FencingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto mounted = MountCluster([this](const std::string& why) {
      ++told_;
      why_ = why;
    });
    ASSERT_TRUE(mounted.ok()) << mounted.status();
    env_ = *std::move(mounted);
    auto root = MakeTestRoot(*env_);
    ASSERT_TRUE(root.ok()) << root.status();
    root_ = *root;
    tree_ = *env_->OpenTree(root_);
  }

  // A second client ends the session of the first one, and then lives on.
  void EndSession() {
    auto mounted = MountCluster(nullptr);
    ASSERT_TRUE(mounted.ok()) << mounted.status();
    ceph_mount_info* const other = static_cast<CephEnv&>(**mounted).mount().get();
    const std::string uuid = UuidOf(env_->SessionName());
    ASSERT_EQ(ceph_start_reclaim(other, uuid.c_str(), CEPH_RECLAIM_RESET), 0);
    ceph_finish_reclaim(other);
    successor_ = *std::move(mounted);
  }

  std::string ReadAsSuccessor(const std::string& name) {
    auto tree = successor_->OpenTree(root_);
    auto file = (*tree)->Open(name, OpenKind::kRead, 0);
    EXPECT_TRUE(file.ok()) << file.status();
    std::string bytes(64, '\0');
    bytes.resize(*(*file)->ReadAt(0, absl::MakeSpan(bytes)));
    return bytes;
  }

  std::atomic<int> told_{0};
  std::string why_;
  std::unique_ptr<MountedEnv> env_;
  std::unique_ptr<MountedEnv> successor_;
  std::string root_;
  std::unique_ptr<EnvTree> tree_;
};

TEST_F(FencingTest, ASyncAfterTheSessionHasEndedIsNoAck) {
  auto file = *tree_->Open("x", OpenKind::kCreate, 0600);
  ASSERT_TRUE(WriteAt(*file, 0, "acked").ok());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(tree_->SyncDirectory("").ok());
  ASSERT_TRUE(WriteAt(*file, 0, "dirty").ok());
  EndSession();
  const absl::Status synced = file->Sync();
  EXPECT_TRUE(absl::IsInternal(synced)) << synced;
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(ReadAsSuccessor("x"), "acked");
}

TEST_F(FencingTest, WhatWasWrittenOverAndSyncedIsThereAfterwards) {
  auto file = *tree_->Open("x", OpenKind::kCreate, 0600);
  ASSERT_TRUE(WriteAt(*file, 0, "first and its tail").ok());
  EXPECT_TRUE(file->GrowAhead(40));
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(tree_->SyncDirectory("").ok());
  // From here on no sync asks the MDS.
  for (const char* bytes : {"later", "third"}) {
    ASSERT_TRUE(WriteAt(*file, 0, bytes).ok());
    ASSERT_TRUE(WriteAt(*file, 30, bytes).ok());
    ASSERT_TRUE(file->Sync().ok());
  }
  EndSession();
  EXPECT_EQ(ReadAsSuccessor("x"),
            StrCat("third and its tail", std::string(12, '\0'), "third", std::string(5, '\0')));
}

TEST_F(FencingTest, AnotherClientSeesTimesThatNoSyncAskedFor) {
  auto file = *tree_->Open("x", OpenKind::kCreate, 0600);
  ASSERT_TRUE(WriteAt(*file, 0, "first").ok());
  ASSERT_TRUE(file->Sync().ok());
  const auto before = file->Stat();
  ASSERT_TRUE(WriteAt(*file, 0, "later").ok());
  ASSERT_TRUE(file->Sync().ok());
  const auto stat = file->Stat();
  auto other = MountCluster(nullptr);
  ASSERT_TRUE(other.ok()) << other.status();
  const absl::Time begin = absl::Now();
  const auto found = (*(*other)->OpenTree(root_))->Stat("x");
  ASSERT_TRUE(before.ok() && stat.ok() && found.ok()) << found.status();
  EXPECT_GT(stat->mtime_ns, before->mtime_ns);
  EXPECT_EQ(found->mtime_ns, stat->mtime_ns);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(30)) << "not only when it would be told anyway";
}

TEST_F(FencingTest, TimesThatWereSyncedAreThoseThatASuccessorFinds) {
  auto file = *tree_->Open("x", OpenKind::kCreate, 0600);
  ASSERT_TRUE(WriteAt(*file, 0, "first").ok());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(tree_->SyncDirectory("").ok());
  ASSERT_TRUE(WriteAt(*file, 0, "later").ok());
  ASSERT_TRUE(file->SyncWithTimes().ok());
  const auto stat = file->Stat();
  EndSession();
  auto tree = successor_->OpenTree(root_);
  const auto found = (*tree)->Stat("x");
  ASSERT_TRUE(stat.ok() && found.ok()) << stat.status() << found.status();
  EXPECT_EQ(found->mtime_ns, stat->mtime_ns);
  EXPECT_EQ(found->size_bytes, stat->size_bytes);
}

TEST_F(FencingTest, NothingReachesCephAfterTheFirstSign) {
  auto file = *tree_->Open("x", OpenKind::kCreate, 0600);
  ASSERT_TRUE(WriteAt(*file, 0, "dirty").ok());  // Without it the sync has nothing to ack.
  EndSession();
  ASSERT_FALSE(file->Sync().ok());
  ASSERT_EQ(told_, 1);
  for (const absl::Status& status :
       {WriteAt(*file, 0, "late"), file->Truncate(0), file->Sync(), file->Stat().status(),
        tree_->SyncDirectory(""), tree_->Remove("x"), tree_->List("").status(),
        tree_->Lock("l", LockKind::kShared).status()}) {
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("fenced off"));
  }
  EXPECT_EQ(told_, 1) << "once";
}

class PauseTest : public FencingTest {
 protected:
  ~PauseTest() override { asks_before_pause = kNoPause; }
  // A sync of a grown file, during which the process stands still after `gates` gates.
  absl::Status SyncWithPauseAfter(int gates) {
    auto file = tree_->Open("x", OpenKind::kCreate, 0600);
    if (!file.ok()) return file.status();
    if (absl::Status wrote = WriteAt(**file, 0, "dirty"); !wrote.ok()) return wrote;
    fsync_count = 0;
    asks_before_pause = gates;
    return (*file)->Sync();
  }
};

TEST_F(PauseTest, NoFsyncFollowsAPauseBetweenTheGateOfASyncAndItsQuestionForTheSize) {
  const absl::Status synced = SyncWithPauseAfter(1);
  EXPECT_TRUE(absl::IsInternal(synced)) << synced;
  EXPECT_THAT(why_, HasSubstr("stood still"));
  EXPECT_EQ(fsync_count, 0);
}

TEST_F(PauseTest, ASyncBeforeAPauseIsNoAckAfterIt) {
  const absl::Status synced = SyncWithPauseAfter(2);
  EXPECT_TRUE(absl::IsInternal(synced)) << synced;
  EXPECT_EQ(told_, 1);
  EXPECT_EQ(fsync_count, 1);
}

TEST_F(FencingTest, ASyncOfADirectoryIsNoAckEither) {
  ASSERT_TRUE(tree_->MakeDirectory("d", 0700).ok());
  ASSERT_TRUE(tree_->SyncDirectory("").ok());
  EndSession();
  // The client hears of the end a moment later. Until then the sync acks what the MDS has in its
  // journal.
  absl::Status synced;
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (synced.ok() && absl::Now() < deadline) {
    synced = tree_->SyncDirectory("d");
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_TRUE(absl::IsInternal(synced)) << synced;
}

TEST_F(FencingTest, TheLockGoesWithTheSession) {
  auto lock = tree_->Lock("l", LockKind::kExclusive);
  ASSERT_TRUE(lock.ok()) << lock.status();
  auto other = MountCluster(nullptr);
  ASSERT_TRUE(other.ok()) << other.status();
  auto its_tree = *(*other)->OpenTree(root_);
  EXPECT_TRUE(absl::IsFailedPrecondition(its_tree->Lock("l", LockKind::kExclusive).status()));
  EndSession();
  EXPECT_TRUE(its_tree->Lock("l", LockKind::kExclusive).ok());
  // Before the first lock goes: if the session is not known to be gone, the lock would be given
  // back.
  EXPECT_FALSE(tree_->SyncDirectory("").ok());
}

TEST_F(FencingTest, AStoreThatWasServedOpensElsewhere) {
  store::StoreOptions options;
  options.root = root_;
  auto first = store::Store::Open(*env_, options);
  ASSERT_TRUE(first.ok()) << first.status();
  EndSession();
  auto second = store::Store::Open(*successor_, options);
  EXPECT_TRUE(second.ok()) << second.status();
  EXPECT_FALSE((*first)->OpenOrCreateFile("x.h5", 0).ok());
}

TEST_F(FencingTest, TheNameForSnapshotsIsRefused) {
  for (const char* name : {".snap", ".snap/now", "d/.snap"}) {
    EXPECT_FALSE(tree_->MakeDirectory(name, 0700).ok()) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(tree_->MakeDirectory(".snap", 0700)));
}

TEST_F(FencingTest, TheLargestFileIsKnown) {
  auto* const knows = dynamic_cast<KnowsFileSizes*>(tree_.get());
  ASSERT_NE(knows, nullptr);
  EXPECT_EQ(knows->FileSizes().bytes, uint64_t{1} << 40);
}

}  // namespace
}  // namespace h5mirror::ceph
