// The directories above a fork's name: a failed fork leaves none that it made, and removes none
// from another file's creation.
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/fault_env.h"
#include "gtest/gtest.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kPage = 512;

class ForkDirectoriesTest : public testing::Test {
 protected:
  ForkDirectoriesTest() : store_(OpenStore(env_, "/")) {
    MakeFile("run.h5");
    run_ = *store_->OpenFile("run.h5");
  }
  void MakeFile(const std::string& name) {
    const auto file = store_->OpenOrCreateFile(name, kPage);
    ASSERT_TRUE(file.ok()) << file.status();
    Writer writer(*file, SessionStart::kContinue);
    ASSERT_TRUE(writer.begun().ok()) << name << ": " << writer.begun();
    ASSERT_TRUE(writer.Write(0, std::string(9 * kPage, 'a')).ok());
    const auto cut = writer.CutDurably(BarrierKind::kCommit);
    ASSERT_TRUE(cut.ok()) << name << ": " << cut.status();
    ASSERT_TRUE(writer.End().ok());
    ASSERT_TRUE((*file)->WaitApplied(absl::Seconds(60)).ok());
  }
  // A fork whose caller goes away, after `meanwhile`, when all its directories exist.
  absl::Status ForkAndGo(
      const std::string& name, const std::function<void()>& meanwhile = [] {}) {
    ForkRequest fork;
    fork.is_cancelled = [&] {
      EXPECT_TRUE(Exists(name + ".h5m"));
      meanwhile();
      return true;
    };
    return store_->Fork(*run_, 1, name, fork).status();
  }
  bool Exists(const std::string& name) { return *(*env_.OpenTree("/"))->Exists(name); }
  bool IsServed(const std::string& name) {
    return store_->OpenFile(name).ok() && Exists(name) && Exists(name + ".h5m/index");
  }

  FaultEnv env_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> run_;
};

TEST_F(ForkDirectoriesTest, AForkThatFailsLeavesNone) {
  EXPECT_TRUE(absl::IsCancelled(ForkAndGo("a/b/c/trial.h5")));
  EXPECT_FALSE(Exists("a"));
  MakeFile("a/other.h5");
  EXPECT_TRUE(absl::IsCancelled(ForkAndGo("a/b/trial.h5")));
  EXPECT_FALSE(Exists("a/b"));
  EXPECT_TRUE(IsServed("a/other.h5"));
}

TEST_F(ForkDirectoriesTest, AForkThatCannotBeginLeavesNone) {
  env_.FailOpensOf("/gen-1", absl::PermissionDeniedError("open /gen-1"));
  EXPECT_TRUE(absl::IsPermissionDenied(store_->Fork(*run_, 1, "a/b/trial.h5", {}).status()));
  EXPECT_FALSE(Exists("a"));
  env_.FailOpensOf("", absl::OkStatus());
  EXPECT_TRUE(store_->Fork(*run_, 1, "a/b/trial.h5", {}).ok());
  EXPECT_TRUE(IsServed("a/b/trial.h5"));
}

TEST_F(ForkDirectoriesTest, OneThatWasThereStays) {
  ASSERT_TRUE((*env_.OpenTree("/"))->MakeDirectory("empty", 0755).ok());
  EXPECT_TRUE(absl::IsCancelled(ForkAndGo("empty/a/trial.h5")));
  EXPECT_TRUE(Exists("empty"));
  EXPECT_FALSE(Exists("empty/a"));
}

TEST_F(ForkDirectoriesTest, AFileThatIsMadeBesideItKeepsThem) {
  EXPECT_TRUE(absl::IsCancelled(ForkAndGo("a/b/trial.h5", [&] { MakeFile("a/b/other.h5"); })));
  EXPECT_FALSE(Exists("a/b/trial.h5.h5m"));
  EXPECT_TRUE(IsServed("a/b/other.h5"));
}

TEST_F(ForkDirectoriesTest, AFileThatIsMovedBesideItKeepsThem) {
  MakeFile("other.h5");
  EXPECT_TRUE(absl::IsCancelled(ForkAndGo(
      "a/b/trial.h5", [&] { EXPECT_TRUE(store_->Move("other.h5", "a/b/moved.h5").ok()); })));
  EXPECT_TRUE(IsServed("a/b/moved.h5"));
}

TEST_F(ForkDirectoriesTest, OfTwoThatFailTheLastLeavesNone) {
  EXPECT_TRUE(absl::IsCancelled(ForkAndGo("a/b/one.h5", [&] {
    EXPECT_TRUE(absl::IsCancelled(ForkAndGo("a/b/two.h5")));
    EXPECT_TRUE(Exists("a/b")) << "the first has its history there";
  })));
  EXPECT_FALSE(Exists("a"));
}

// Forks that fail, and files that are made and moved, in the same directories at once.
TEST_F(ForkDirectoriesTest, AnyNumberAtOnceDoNoHarm) {
  constexpr int kRounds = 20, kForks = 2;
  std::atomic<int> round{-1};
  std::vector<std::thread> threads;
  for (int i = 0; i < kForks; ++i) {
    threads.emplace_back([this, i, &round] {
      for (int now = 0; (now = round) < kRounds;) {
        const std::string name =
            "d" + std::to_string(std::max(now, 0)) + "/e/fork" + std::to_string(i) + ".h5";
        const absl::Status ended = ForkAndGo(name);
        EXPECT_TRUE(absl::IsCancelled(ended)) << ended;
      }
    });
  }
  for (int now = 0; now < kRounds; ++now) {
    round = now;
    const std::string directory = "d" + std::to_string(now) + "/e/";
    MakeFile(directory + "made.h5");
    const absl::Status moved =
        store_->Move(directory + "made.h5", "d" + std::to_string(now) + "/f/moved.h5");
    EXPECT_TRUE(moved.ok()) << moved;
    MakeFile(directory + "again.h5");
  }
  round = kRounds;
  for (std::thread& thread : threads) thread.join();
  for (int now = 0; now < kRounds; ++now) {
    const std::string directory = "d" + std::to_string(now);
    EXPECT_TRUE(IsServed(directory + "/f/moved.h5"));
    EXPECT_TRUE(IsServed(directory + "/e/again.h5"));
    EXPECT_FALSE(Exists(directory + "/e/fork0.h5.h5m"));
  }
}

}  // namespace
}  // namespace h5mirror::store
