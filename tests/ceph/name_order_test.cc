// CephFS loses names in order (base/names_in_order.h). A client makes files as a first commit does,
// and a new generation of each; nothing syncs them. It is killed together with the MDS. With the
// next MDS each head must have its index, and each second head the first one's other name.
//
// H5M_CEPH_LIVES: how many clients die; H5M_SEED: when.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/strings.h"
#include "gtest/gtest.h"
#include "tests/ceph/ceph_place.h"
#include "tests/crash/settings.h"

namespace h5mirror::ceph {
namespace {

constexpr uint64_t kLives = 4;
constexpr int kLifeMsMax = 1700;  // mds_tick_interval writes the journal each second

// The mode shows which of its two heads a file has.
constexpr int kFirstMode = 0600, kSecondMode = 0640;

bool MakeFile(ceph_mount_info* mount, const std::string& name, int mode = kFirstMode) {
  const int fd = ceph_open(mount, name.c_str(), O_CREAT | O_RDWR, mode);
  return fd >= 0 && ceph_close(mount, fd) == 0;
}

bool MakeFirstHead(ceph_mount_info* mount, const std::string& head) {
  const std::string history = head + ".h5m";
  return ceph_mkdir(mount, history.c_str(), 0700) == 0 && MakeFile(mount, history + "/gen-1") &&
         MakeFile(mount, history + "/index.new") &&
         ceph_rename(mount, (history + "/index.new").c_str(), (history + "/index").c_str()) == 0 &&
         ceph_rename(mount, (history + "/gen-1").c_str(), head.c_str()) == 0;
}

bool MakeSecondHead(ceph_mount_info* mount, const std::string& head) {
  const std::string history = head + ".h5m";
  return MakeFile(mount, history + "/gen-2", kSecondMode) &&
         ceph_link(mount, head.c_str(), (history + "/head-1").c_str()) == 0 &&
         ceph_rename(mount, (history + "/gen-2").c_str(), head.c_str()) == 0;
}

bool IsSecondHead(ceph_mount_info* mount, const std::string& head) {
  struct ceph_statx stat = {};
  return ceph_statx(mount, head.c_str(), &stat, CEPH_STATX_MODE, 0) == 0 &&
         (stat.stx_mode & 07777) == kSecondMode;
}

// Runs until it is killed. Writes a byte to `told` when it begins, and one for each file.
[[noreturn]] void MakeFiles(const std::string& root, int told) {
  auto mounted = MountCluster(nullptr);
  if (!mounted.ok()) _exit(1);
  // By paths, since CephTree::Rename() waits for the journal.
  ceph_mount_info* const mount = static_cast<CephEnv&>(**mounted).mount().get();
  bool goes_on = ceph_mkdir(mount, root.c_str(), 0700) == 0 &&
                 (*(*mounted)->OpenTree("/"))->SyncDirectory("").ok();
  for (int i = 0; goes_on; ++i) {
    const std::string head = StrCat(root, "/", i, ".h5");
    goes_on = write(told, "x", 1) == 1 && MakeFirstHead(mount, head) && MakeSecondHead(mount, head);
  }
  _exit(1);
}

struct Left {
  bool was_read = false;
  int head_count = 0;
  int lacking_count = 0;  // heads without an index
  int second_count = 0;   // heads of generation 2
  int bare_count = 0;     // of these, heads without the first one's other name
};

Left CountLeft(const std::string& root) {
  auto mounted = MountCluster(nullptr);
  if (!mounted.ok()) return {};
  ceph_mount_info* const mount = static_cast<CephEnv&>(**mounted).mount().get();
  auto tree = (*mounted)->OpenTree(root);
  if (!tree.ok()) return {};
  const auto entries = (*tree)->List("");
  if (!entries.ok()) return {};
  Left left{.was_read = true};
  for (const DirectoryEntry& entry : *entries) {
    if (!entry.name.ends_with(".h5")) continue;
    ++left.head_count;
    if (!(*tree)->Exists(entry.name + ".h5m/index").value_or(false)) ++left.lacking_count;
    if (!IsSecondHead(mount, StrCat(root, "/", entry.name))) continue;
    ++left.second_count;
    if (!(*tree)->Exists(entry.name + ".h5m/head-1").value_or(false)) ++left.bare_count;
  }
  return left;
}

class NameOrderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const cluster = getenv("H5M_TEST_CEPH_CLUSTER");
    ASSERT_NE(cluster, nullptr) << "use tests/ceph/run";
    cluster_ = cluster;
    directory_ = ClusterUrl().conf.substr(0, ClusterUrl().conf.rfind('/'));
    // The next MDS must not wait 45 s for the dead client.
    std::ofstream(ClusterUrl().conf, std::ios::app) << "\n[mds]\nmds_reconnect_timeout = 3\n";
  }

  // Returns how many files the client had begun when it and the MDS were killed.
  int LiveAndDie(const std::string& root, absl::Duration life) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t client = fork();  // Before the child mounts: libcephfs survives no fork.
    if (client == 0) MakeFiles(root, ends[1]);
    close(ends[1]);
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1) << "the client has made nothing";
    absl::SleepFor(life);
    pid_t mds = 0;
    std::ifstream(directory_ + "/pids/mds.a") >> mds;
    EXPECT_GT(mds, 0);
    if (mds > 0) kill(mds, SIGKILL);
    kill(client, SIGKILL);
    waitpid(client, nullptr, 0);
    int begun = 1;
    while (read(ends[0], &byte, 1) == 1) ++begun;
    close(ends[0]);
    EXPECT_EQ(system(StrCat("'", cluster_, "' launch '", directory_, "' mds.a").c_str()), 0);
    return begun;
  }

  // In a process of its own, too: this one forks again.
  Left LookAtWhatIsLeft(const std::string& root) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t successor = fork();
    if (successor == 0) {
      const Left left = CountLeft(root);
      _exit(write(ends[1], &left, sizeof left) == sizeof left ? 0 : 1);
    }
    close(ends[1]);
    Left left;
    EXPECT_EQ(read(ends[0], &left, sizeof left), static_cast<ssize_t>(sizeof left));
    close(ends[0]);
    waitpid(successor, nullptr, 0);
    return left;
  }

  std::string cluster_, directory_;
};

TEST_F(NameOrderTest, AHeadThatIsThereHasItsIndexAndTheOldHeadWhereverTheMdsDied) {
  std::mt19937_64 random(store::FirstSeed());
  int lost = 0, second = 0;
  const uint64_t lives = store::FromEnvironment("H5M_CEPH_LIVES", kLives);
  for (uint64_t life = 0; life < lives; ++life) {
    const std::string root = StrCat("/life-", life);
    const int begun = LiveAndDie(root, absl::Milliseconds(50 + random() % kLifeMsMax));
    const Left left = LookAtWhatIsLeft(root);
    ASSERT_TRUE(left.was_read);
    EXPECT_EQ(left.lacking_count, 0) << "heads without an index in life " << life;
    EXPECT_EQ(left.bare_count, 0) << "new heads without the old one in life " << life;
    std::printf("life %d: %d files begun, %d heads left, %d of them new ones\n",
                static_cast<int>(life), begun, left.head_count, left.second_count);
    second += left.second_count;
    lost += begun - 1 - left.head_count;  // The newest file may have had no head.
  }
  EXPECT_GT(lost, 0) << "the journal was whole each time";
  EXPECT_GT(second, 0) << "no new head was left";
}

}  // namespace
}  // namespace h5mirror::ceph
