// The rights of other users to a head on the disk, through all that a store does with it.
#include "onion_store/shared/head_access.h"

#include <memory>
#include <string>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kAnna = 1001, kBob = 1002;
NamedAccess Reads(uint32_t uid) { return {NamedAccess::Kind::kUser, uid, 4}; }

class HeadAccessTest : public ::testing::Test {
 protected:
  void Open(HeadOwner owner, uint32_t umask_bits = 0027) {
    store_.reset();
    StoreOptions options;
    options.root = "/root";
    options.background_threads = 0;
    options.owner_of_heads = owner;
    options.umask_bits = umask_bits;
    auto store = Store::Open(env_, options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  // One session that writes and commits.
  void Write(const std::string& name, SessionStart start, const LocalAccess& local) {
    auto file = store_->OpenOrCreateFile(name, 4096);
    ASSERT_TRUE(file.ok()) << file.status();
    const Token token = *(*file)->Acquire();
    ASSERT_TRUE((*file)->Begin(token, start, Origin{"m", "host", "/x.h5"}, local).ok());
    const std::string bytes(4096, static_cast<char>('a' + ++count_));
    const std::string_view piece = bytes;
    const Extent extent{0, bytes.size()};
    ASSERT_TRUE((*file)->Write(token, {&extent, 1}, {&piece, 1}).ok());
    CutRequest request;
    request.kind = BarrierKind::kCommit;
    request.size_bytes = bytes.size();
    ASSERT_TRUE((*file)->Cut(token, request, [](auto) {}).ok());
    ASSERT_TRUE((*file)->End(token, SessionEnd::kClean).ok());
    Settle();
  }

  void Settle() {
    while (store_->RunBackground()) {
    }
  }

  FileAccess Of(const std::string& name) {
    auto tree = env_.OpenTree("/root");
    auto head = (*tree)->Open(name, OpenKind::kRead, 0);
    EXPECT_TRUE(head.ok()) << head.status();
    return head.ok() ? *(*head)->Access() : FileAccess();
  }

  FaultEnv env_;
  std::unique_ptr<Store> store_;
  int count_ = 0;
};

TEST_F(HeadAccessTest, WithoutListsTheModeIsTheLocalOneUnderTheUmask) {
  Open(HeadOwner::kServer);
  Write("x.h5", SessionStart::kNewGeneration, {0664, kAnna});
  EXPECT_EQ(Of("x.h5"), (FileAccess{0640, {}}));
  Write("x.h5", SessionStart::kContinue, {0600, kAnna});
  EXPECT_EQ(Of("x.h5"), (FileAccess{0640, {}})) << "a head keeps the mode that it was made with";
}

TEST_F(HeadAccessTest, ThePrivateFileOfAUserIsForThatUserAndTheServer) {
  Open(HeadOwner::kAcl);
  Write("x.h5", SessionStart::kNewGeneration, {0600, kAnna});
  EXPECT_EQ(Of("x.h5"), (FileAccess{0600, {Reads(kAnna)}}));
}

TEST_F(HeadAccessTest, AWriterThatIsNoUserOfTheHostAddsNobody) {
  Open(HeadOwner::kAcl);
  Write("x.h5", SessionStart::kNewGeneration, {0644, std::nullopt});
  EXPECT_EQ(Of("x.h5"), (FileAccess{0640, {}}));
}

TEST_F(HeadAccessTest, ALaterSessionTakesFromTheGroupAndAddsNothing) {
  Open(HeadOwner::kAcl);
  Write("x.h5", SessionStart::kNewGeneration, {0644, kAnna});
  Write("x.h5", SessionStart::kContinue, {0600, kBob});
  EXPECT_EQ(Of("x.h5"), (FileAccess{0600, {Reads(kAnna)}}));
  Write("x.h5", SessionStart::kContinue, {0666, kBob});
  EXPECT_EQ(Of("x.h5"), (FileAccess{0600, {Reads(kAnna)}}));
}

TEST_F(HeadAccessTest, AFileThatIsMadeAnewIsItsNewWriters) {
  Open(HeadOwner::kAcl);
  Write("x.h5", SessionStart::kNewGeneration, {0644, kAnna});
  Write("x.h5", SessionStart::kNewGeneration, {0600, kBob});
  EXPECT_EQ(Of("x.h5"), (FileAccess{0600, {Reads(kBob)}}));
}

TEST_F(HeadAccessTest, AHeadThatWasThereBeforeIsNarrowedOnly) {
  Open(HeadOwner::kServer);
  Write("x.h5", SessionStart::kNewGeneration, {0644, kAnna});
  Open(HeadOwner::kAcl);
  Write("x.h5", SessionStart::kContinue, {0644, kAnna});
  EXPECT_EQ(Of("x.h5"), (FileAccess{0640, {}}));
  Write("x.h5", SessionStart::kContinue, {0600, kAnna});
  EXPECT_EQ(Of("x.h5"), (FileAccess{0600, {}}));
}

TEST_F(HeadAccessTest, ARollbackIntoANewHeadKeepsItAndWidensNothing) {
  Open(HeadOwner::kAcl);
  Write("x.h5", SessionStart::kNewGeneration, {0644, kAnna});
  Write("x.h5", SessionStart::kNewGeneration, {0600, kAnna});
  auto file = store_->OpenFile("x.h5");
  ASSERT_TRUE(file.ok()) << file.status();
  auto made = (*file)->Rollback(1, Provenance(), {1});
  ASSERT_TRUE(made.ok()) << made.status();
  Settle();
  EXPECT_EQ(made->generation, 3);
  EXPECT_EQ(Of("x.h5"), (FileAccess{0600, {Reads(kAnna)}}));
}

TEST_F(HeadAccessTest, MovesAndAnUndeleteKeepIt) {
  Open(HeadOwner::kAcl);
  Write("x.h5", SessionStart::kNewGeneration, {0600, kAnna});
  ASSERT_TRUE(store_->Move("x.h5", "d/y.h5").ok());
  EXPECT_EQ(Of("d/y.h5"), (FileAccess{0600, {Reads(kAnna)}}));
  const auto removed = store_->Remove("d/y.h5", Provenance(), absl::Hours(1));
  ASSERT_TRUE(removed.ok()) << removed.status();
  ASSERT_TRUE(store_->Undelete(removed->id, "z.h5").ok());
  EXPECT_EQ(Of("z.h5"), (FileAccess{0600, {Reads(kAnna)}}));
}

TEST_F(HeadAccessTest, AFileSystemWithoutListsMakesHeadsForTheServerAlone) {
  env_.SetAccessLists(false);
  Open(HeadOwner::kAcl);
  Write("x.h5", SessionStart::kNewGeneration, {0644, kAnna});
  Write("y.h5", SessionStart::kNewGeneration, {0644, kAnna});
  EXPECT_EQ(Of("x.h5"), (FileAccess{0600, {}}));
  EXPECT_EQ(Of("y.h5"), (FileAccess{0600, {}}));
  const auto notices = StoreHealth::Of(*store_)->TakeNotices();
  ASSERT_EQ(notices.size(), 1u) << "told once";
  EXPECT_EQ(notices[0].kind, StoreNotice::Kind::kNoAccessList);
  EXPECT_THAT(notices[0].text, HasSubstr("owner_of_heads = \"acl\""));
}

TEST_F(HeadAccessTest, ACrashNeverWidensAHead) {
  Open(HeadOwner::kAcl);
  Write("x.h5", SessionStart::kNewGeneration, {0600, kAnna});
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const auto crashed = env_.Crash(env_.change_count(), seed);
    auto tree = crashed->OpenTree("/root");
    auto head = (*tree)->Open("x.h5", OpenKind::kRead, 0);
    ASSERT_TRUE(head.ok()) << head.status();
    const FileAccess access = *(*head)->Access();
    EXPECT_EQ(access.mode_bits, 0600u) << "seed " << seed;
    EXPECT_THAT(access.named, AnyOf(IsEmpty(), ElementsAre(Reads(kAnna))));
  }
}

TEST_F(HeadAccessTest, AFullDiskRefusesTheSession) {
  Open(HeadOwner::kAcl);
  auto file = store_->OpenOrCreateFile("x.h5", 4096);
  const Token token = *(*file)->Acquire();
  bool met = false;
  for (uint64_t call = 0; call < 20 && !met; ++call) {
    env_.FailCall(call, absl::ResourceExhaustedError("full"));
    const absl::Status begun =
        (*file)->Begin(token, SessionStart::kNewGeneration, Origin{}, {0600, kAnna});
    met = absl::IsResourceExhausted(begun);
    if (begun.ok()) break;
  }
  EXPECT_TRUE(met);
}

TEST(DirectoryModeTest, AllMayPassThroughWhereThereAreLists) {
  StoreOptions options;
  EXPECT_EQ(DirectoryMode(options), 0750u);
  options.owner_of_heads = HeadOwner::kAcl;
  EXPECT_EQ(DirectoryMode(options), 0751u);
}

}  // namespace
}  // namespace h5mirror::store
