#include "onion_store/disk/name_directories.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/fault_env.h"
#include "gtest/gtest.h"

namespace h5mirror::store {
namespace {

class NameDirectoriesTest : public testing::Test {
 protected:
  bool Exists(const std::string& name) { return *tree_->Exists(name); }
  // Makes a file as its creation does while its use lives.
  void MakeFile(const std::string& name) {
    ASSERT_TRUE(tree_->Open(name, OpenKind::kCreate, 0600).ok());
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_ = *env_.OpenTree("/");
  DurableNames durable_names_;
  NameDirectories directories_{*tree_, durable_names_};
};

TEST_F(NameDirectoriesTest, WhatWasMadeForNothingGoes) {
  ASSERT_TRUE(tree_->MakeDirectory("old", 0700).ok());
  {
    NameDirectories::Use use(directories_, "old/new/deep/x.h5");
    ASSERT_TRUE(use.Make(0755).ok());
    EXPECT_TRUE(Exists("old/new/deep"));
    use.Abandon();
    EXPECT_TRUE(Exists("old/new/deep"));
  }
  EXPECT_FALSE(Exists("old/new"));
  EXPECT_TRUE(Exists("old")) << "it was there before, and empty";
}

TEST_F(NameDirectoriesTest, WithoutAbandonAllStays) {
  ASSERT_TRUE(NameDirectories::Use(directories_, "d/x.h5").Make(0755).ok());
  EXPECT_TRUE(Exists("d"));
}

TEST_F(NameDirectoriesTest, WhatAnotherNameUsesStaysUntilThatIsThere) {
  std::optional<NameDirectories::Use> fork, other;
  fork.emplace(directories_, "d/e/fork.h5");
  ASSERT_TRUE(fork->Make(0755).ok());
  other.emplace(directories_, "d/other.h5");
  ASSERT_TRUE(other->Make(0755).ok()) << "it has nothing in there yet";
  fork->Abandon();
  fork.reset();
  EXPECT_FALSE(Exists("d/e"));
  EXPECT_TRUE(Exists("d"));
  MakeFile("d/other.h5");
  other.reset();
  EXPECT_TRUE(Exists("d/other.h5"));
}

TEST_F(NameDirectoriesTest, TheLastOfTwoTakesAwayWhatTheFirstHasMade) {
  std::optional<NameDirectories::Use> one, two;
  one.emplace(directories_, "d/one.h5");
  ASSERT_TRUE(one->Make(0755).ok());
  two.emplace(directories_, "d/two.h5");
  ASSERT_TRUE(two->Make(0755).ok());
  one->Abandon();
  one.reset();
  EXPECT_TRUE(Exists("d"));
  two->Abandon();
  two.reset();
  EXPECT_FALSE(Exists("d"));
}

TEST_F(NameDirectoriesTest, WhatIsKeptStaysEmptyToo) {
  std::optional<NameDirectories::Use> fork;
  fork.emplace(directories_, "d/fork.h5");
  ASSERT_TRUE(fork->Make(0755).ok());
  NameDirectories::Use(directories_, "d/moved.h5").Keep();
  fork->Abandon();
  fork.reset();
  EXPECT_TRUE(Exists("d"));
}

// A tree that gives each directory the same inode, like a disk that reuses inodes.
class OneInodeTree final : public EnvTree {
 public:
  absl::StatusOr<std::unique_ptr<EnvFile>> Open(std::string_view, OpenKind, uint32_t) override {
    return absl::UnimplementedError("");
  }
  absl::Status MakeDirectory(std::string_view, uint32_t) override { return absl::OkStatus(); }
  absl::Status Rename(std::string_view, std::string_view) override { return absl::OkStatus(); }
  absl::Status Link(std::string_view, std::string_view) override { return absl::OkStatus(); }
  absl::Status Remove(std::string_view) override { return absl::OkStatus(); }
  absl::Status RemoveDirectory(std::string_view) override { return absl::OkStatus(); }
  absl::Status SyncDirectory(std::string_view) override {
    ++syncs;
    return absl::OkStatus();
  }
  absl::StatusOr<std::vector<DirectoryEntry>> List(std::string_view) override {
    return std::vector<DirectoryEntry>();
  }
  absl::StatusOr<FileStat> Stat(std::string_view) override { return FileStat{7, 0, 0, 0}; }
  absl::StatusOr<std::unique_ptr<EnvLock>> Lock(std::string_view, LockKind) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<uint64_t> FreeBytes() override { return 0; }

  int syncs = 0;
};

TEST_F(NameDirectoriesTest, ADirectoryOfARemovedOnesNameIsSyncedAgain) {
  OneInodeTree tree;
  NameDirectories directories(tree, durable_names_);
  for (const int syncs : {1, 2}) {
    NameDirectories::Use use(directories, "d/x.h5");
    ASSERT_TRUE(use.Make(0755).ok());
    ASSERT_TRUE(durable_names_.Sync(tree, "d").ok());
    ASSERT_TRUE(durable_names_.Sync(tree, "d").ok()) << "once is enough";
    EXPECT_EQ(tree.syncs, syncs);
    use.Abandon();
  }
}

}  // namespace
}  // namespace h5mirror::store
