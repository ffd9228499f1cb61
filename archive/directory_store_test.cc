#include "archive/directory_store.h"

#include <stdlib.h>

#include "archive/testing/object_store_contract.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::archive {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<DirectoryStore> StoreOn(FaultEnv& env) {
  return std::make_unique<DirectoryStore>(*env.OpenTree("/"), "arc", "/arc");
}

TEST(DirectoryStoreTest, KeepsTheContractInMemory) {
  FaultEnv env;
  ExpectObjectStoreContract(*StoreOn(env));
}

TEST(DirectoryStoreTest, KeepsTheContractOnADisk) {
  std::string root = testing::TempDir() + "/h5m-archive-XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  {
    auto opened = DirectoryStore::Open(Env::Posix(), root);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ((*opened)->Describe(), root);
    ExpectObjectStoreContract(**opened);
  }
  std::filesystem::remove_all(root);
}

// A power loss leaves all of an object or nothing of it.
TEST(DirectoryStoreTest, APutThatWasAckedSurvivesAPowerLossAndNoHalfOneDoes) {
  FaultEnv env;
  const std::string text(3000, 'x');
  ASSERT_TRUE(PutText(*StoreOn(env), "files/a/1", text).ok());
  const size_t acked = env.change_count();
  ASSERT_TRUE(PutText(*StoreOn(env), "files/b/1", "other").ok());
  for (size_t moment = 0; moment <= env.change_count(); ++moment) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      auto crashed = env.Crash(moment, seed);
      const auto found = GetText(*StoreOn(*crashed), "files/a/1");
      if (moment >= acked || !absl::IsNotFound(found.status())) {
        EXPECT_EQ(found.value_or("lost"), text) << moment << ", seed " << seed;
      }
    }
  }
}

// The call that put the object stopped before its last sync. Once a later call finds the object,
// its name is durable.
TEST(DirectoryStoreTest, AnObjectThatIsFoundInItsPlaceIsDurable) {
  FaultEnv env;
  const std::string text(3000, 'x');
  // The last call syncs the directory.
  ASSERT_TRUE(PutText(*StoreOn(env), "files/a/0", text).ok());
  const uint64_t before = env.call_count();
  ASSERT_TRUE(PutText(*StoreOn(env), "files/a/1", text).ok());
  const uint64_t calls = env.call_count() - before;
  env.FailCall(calls - 1, absl::InternalError("Input/output error"));
  const absl::Status failed = PutText(*StoreOn(env), "files/a/2", text);
  EXPECT_TRUE(absl::IsFailedPrecondition(failed)) << failed;
  EXPECT_THAT(failed.message(), HasSubstr("put files/a/2 in /arc: "));
  EXPECT_TRUE(absl::IsAlreadyExists(PutText(*StoreOn(env), "files/a/2", text)));
  for (uint64_t seed = 0; seed < 30; ++seed) {
    auto crashed = env.Crash(env.change_count(), seed);
    EXPECT_EQ(GetText(*StoreOn(*crashed), "files/a/2").value_or("lost"), text) << seed;
  }
}

// A late claim by another server must not remove the name, not even for a moment.
TEST(DirectoryStoreTest, TheOwnerOfAnArchiveKeepsItsName) {
  FaultEnv env;
  const auto store = StoreOn(env);
  for (const std::string name : {"root", "cluster"}) {
    ASSERT_TRUE(PutText(*store, name, "owner").ok());
    // A rename to this name would fail.
    ASSERT_TRUE((*env.OpenTree("/"))->MakeDirectory("arc/" + name + ".new", 0700).ok());
    EXPECT_TRUE(absl::IsAlreadyExists(PutText(*store, name, "other")));
    EXPECT_EQ(GetText(*store, name).value_or("lost"), "owner");
  }
}

TEST(DirectoryStoreTest, ADeletionThatWasAckedStays) {
  FaultEnv env;
  auto store = StoreOn(env);
  ASSERT_TRUE(PutText(*store, "files/a/1", "x").ok());
  ASSERT_TRUE(store->Delete("files/a/1", kTestTimeout).ok());
  for (uint64_t seed = 0; seed < 30; ++seed) {
    auto crashed = env.Crash(env.change_count(), seed);
    EXPECT_TRUE(absl::IsNotFound(StoreOn(*crashed)->Head("files/a/1", kTestTimeout).status()));
  }
}

TEST(DirectoryStoreTest, WhatACrashLeftHalfWrittenIsNoObject) {
  FaultEnv env;
  auto store = StoreOn(env);
  ASSERT_TRUE(PutText(*store, "files/a/1", "x").ok());
  auto tree = *env.OpenTree("/");
  ASSERT_TRUE(tree->Open("arc/files/a/2.new", OpenKind::kCreate, 0600).ok());
  const auto page = store->List("", "", 10, kTestTimeout);
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->objects, ElementsAre(store::ObjectInfo{"files/a/1", 1}));
  ASSERT_TRUE(PutText(*store, "files/a/2", "new").ok());
  EXPECT_EQ(GetText(*store, "files/a/2").value_or(""), "new");
  EXPECT_FALSE(*tree->Exists("arc/files/a/2.new"));
}

TEST(DirectoryStoreTest, ADirectoryThatSomebodyRemovedIsMadeAgain) {
  FaultEnv env;
  auto store = StoreOn(env);
  ASSERT_TRUE(PutText(*store, "files/a/1", "x").ok());
  auto tree = *env.OpenTree("/");
  ASSERT_TRUE(tree->Remove("arc/files/a/1").ok());
  ASSERT_TRUE(tree->RemoveDirectory("arc/files/a").ok());
  EXPECT_TRUE(PutText(*store, "files/a/2", "y").ok());
  EXPECT_EQ(GetText(*store, "files/a/2").value_or(""), "y");
}

TEST(DirectoryStoreTest, AFullDiskIsSaid) {
  FaultEnv env;
  auto store = StoreOn(env);
  env.SetCapacity(1000);
  EXPECT_TRUE(absl::IsResourceExhausted(PutText(*store, "a", std::string(3000, 'x'))));
  env.SetCapacity(UINT64_MAX);
  EXPECT_TRUE(PutText(*store, "a", std::string(3000, 'x')).ok());
}

TEST(DirectoryStoreTest, AnErrorOfTheSourcePutsNothing) {
  class Broken final : public store::ObjectSource {
   public:
    uint64_t size_bytes() const override { return 10; }
    absl::Status Read(uint64_t, absl::Span<char>) override {
      return absl::DataLossError("read pages-000001");
    }
  };
  FaultEnv env;
  Broken source;
  const absl::Status put = StoreOn(env)->Put("a", source, kTestTimeout);
  EXPECT_TRUE(absl::IsDataLoss(put)) << put;
  EXPECT_TRUE(absl::IsNotFound(StoreOn(env)->Head("a", kTestTimeout).status()));
}

}  // namespace
}  // namespace h5mirror::archive
