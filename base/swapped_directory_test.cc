// A directory that other users may write: one of them puts a link where we have just made a
// directory.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "base/env.h"
#include "gtest/gtest.h"

namespace {

// Runs between the system's mkdirat() and its return.
std::function<void()>& AfterMaking() {
  static auto* const hook = new std::function<void()>;
  return *hook;
}

}  // namespace

// In place of libc's, for this program.
extern "C" int mkdirat(int directory, const char* path, mode_t mode) {
  const auto made = static_cast<int>(syscall(SYS_mkdirat, directory, path, mode));
  if (made == 0 && AfterMaking()) AfterMaking()();
  return made;
}

namespace h5mirror {
namespace {

class SwappedDirectoryTest : public ::testing::Test {
 protected:
  SwappedDirectoryTest() {
    std::string pattern = ::testing::TempDir() + "/swapped.XXXXXX";
    root_ = mkdtemp(pattern.data());
    tree_ = *Env::Posix().OpenTree(root_);
  }
  ~SwappedDirectoryTest() override {
    AfterMaking() = nullptr;
    std::filesystem::remove_all(root_);
  }
  mode_t ModeOf(const std::string& name) const {
    struct stat st {};
    EXPECT_EQ(stat((root_ / name).c_str(), &st), 0) << name;
    return st.st_mode & 07777;
  }

  std::filesystem::path root_;
  std::unique_ptr<EnvTree> tree_;
};

TEST_F(SwappedDirectoryTest, ALinkInItsPlaceLeadsNowhere) {
  ASSERT_TRUE(tree_->MakeDirectory("private", 0700).ok());
  AfterMaking() = [this] {
    std::filesystem::rename(root_ / "new", root_ / "away");
    std::filesystem::create_symlink("private", root_ / "new");
  };
  EXPECT_FALSE(tree_->MakeDirectory("new", 0755).ok());
  EXPECT_EQ(ModeOf("private"), 0700u);
}

TEST_F(SwappedDirectoryTest, APrivateDirectoryInItsPlaceStaysPrivate) {
  ASSERT_TRUE(tree_->MakeDirectory("private", 0700).ok());
  ASSERT_TRUE(tree_->MakeDirectory("private/of-anna", 0755).ok());
  AfterMaking() = [this] {
    std::filesystem::rename(root_ / "new", root_ / "away");
    std::filesystem::rename(root_ / "private", root_ / "new");
  };
  EXPECT_FALSE(tree_->MakeDirectory("new", 0755).ok());
  EXPECT_EQ(ModeOf("new"), 0700u);
}

// Both make it; the one that finds it there goes on at once.
TEST_F(SwappedDirectoryTest, AnotherThreadFillsItOnceItIsMade) {
  absl::Status found, made_below;
  absl::Notification is_filled;
  std::thread other;
  std::atomic<bool> has_run = false;
  AfterMaking() = [&] {
    if (has_run.exchange(true)) return;
    other = std::thread([&] {
      found = tree_->MakeDirectory("new", 0755);
      made_below = tree_->MakeDirectory("new/deep", 0755);
      is_filled.Notify();
    });
    // Without the lock that is soon; with it the other thread waits.
    is_filled.WaitForNotificationWithTimeout(absl::Milliseconds(200));
  };
  EXPECT_EQ(tree_->MakeDirectory("new", 0755), absl::OkStatus());
  other.join();
  EXPECT_TRUE(absl::IsAlreadyExists(found)) << found;
  EXPECT_EQ(made_below, absl::OkStatus());
  EXPECT_EQ(ModeOf("new"), 0755u);
}

TEST_F(SwappedDirectoryTest, TheModeIsTheCallersUnderAnyUmask) {
  for (const mode_t mask : {0000, 0022, 0077, 0277, 0777}) {
    const std::string name = "d" + std::to_string(mask);
    const mode_t before = umask(mask);
    const absl::Status made = tree_->MakeDirectory(name, 0751);
    umask(before);
    EXPECT_TRUE(made.ok()) << made;
    EXPECT_EQ(ModeOf(name), 0751u);
  }
}

}  // namespace
}  // namespace h5mirror
