#include "server/state/root_hint.h"

#include "base/testing/fault_env.h"
#include "gtest/gtest.h"

namespace h5mirror::server {
namespace {

constexpr char kName[] = "d/hint";

class RootHintTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(tree_->MakeDirectory("d", 0700).ok()); }

  FaultEnv env_;
  const std::unique_ptr<EnvTree> tree_ = *env_.OpenTree("/");
};

TEST_F(RootHintTest, TheLastOneCounts) {
  ASSERT_TRUE(ReplaceRootHint(env_, "/", kName, "a long hint").ok());
  ASSERT_TRUE(ReplaceRootHint(env_, "/", kName, "short").ok());
  EXPECT_EQ(*ReadRootHint(env_, "/", kName, 100), "short");
  EXPECT_EQ(*ReadRootHint(env_, "/", kName, 3), "sho");
  EXPECT_EQ(tree_->List("d")->size(), 1u) << "no other file is left";
}

TEST_F(RootHintTest, AFailedWriteLeavesTheFormerOne) {
  ASSERT_TRUE(ReplaceRootHint(env_, "/", kName, "former").ok());
  env_.FailCall(1, absl::ResourceExhaustedError("full"));  // 0 is the open
  EXPECT_TRUE(absl::IsResourceExhausted(ReplaceRootHint(env_, "/", kName, "next")));
  EXPECT_EQ(*ReadRootHint(env_, "/", kName, 100), "former");
  EXPECT_EQ(tree_->List("d")->size(), 1u) << "the new one is removed";
}

TEST_F(RootHintTest, AFileThatIsKeptSurvivesAPowerLossAndOneThatIsForgottenStaysAway) {
  constexpr char kKept[] = ".h5mirror/kept";
  ASSERT_TRUE(tree_->MakeDirectory(".h5mirror", 0700).ok());
  ASSERT_TRUE(tree_->SyncDirectory("").ok());
  EXPECT_TRUE(ForgetRootFile(env_, "/", kKept).ok());
  ASSERT_TRUE(KeepRootFile(env_, "/", kKept, "text").ok());
  ASSERT_TRUE(ForgetRootFile(env_, "/", kKept).ok());
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto forgotten = env_.Crash(env_.change_count(), seed);
    EXPECT_TRUE(absl::IsNotFound(ReadRootHint(*forgotten, "/", kKept, 100).status())) << seed;
  }
  ASSERT_TRUE(KeepRootFile(env_, "/", kKept, "text").ok());
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const auto crashed = env_.Crash(env_.change_count(), seed);
    EXPECT_EQ(ReadRootHint(*crashed, "/", kKept, 100).value_or("lost"), "text") << seed;
  }
}

TEST_F(RootHintTest, WithoutItsDirectoryThereIsNone) {
  EXPECT_TRUE(absl::IsNotFound(ReplaceRootHint(env_, "/", "other/hint", "x")));
  EXPECT_TRUE(absl::IsNotFound(ReadRootHint(env_, "/", "other/hint", 9).status()));
}

}  // namespace
}  // namespace h5mirror::server
