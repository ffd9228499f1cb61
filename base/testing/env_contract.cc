#include "base/testing/env_contract.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/strings.h"
#include "gmock/gmock.h"

namespace h5mirror {

using ::testing::UnorderedElementsAre;

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(EnvContractTest);

void EnvContractTest::SetUp() {
  place_ = GetParam().make();
  ASSERT_NE(place_, nullptr);
  auto tree = place_->env().OpenTree(place_->root());
  ASSERT_TRUE(tree.ok()) << tree.status();
  tree_ = *std::move(tree);
}

std::unique_ptr<EnvFile> EnvContractTest::Make(const std::string& name, const std::string& bytes) {
  auto file = tree_->Open(name, OpenKind::kCreateFresh, 0600);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return nullptr;
  const absl::Status written = WriteAt(**file, 0, bytes);
  EXPECT_TRUE(written.ok()) << written;
  return *std::move(file);
}

std::string EnvContractTest::Read(EnvFile& file) {
  const auto size = file.Size();
  EXPECT_TRUE(size.ok()) << size.status();
  std::string bytes(size.value_or(0), '?');
  const auto got = file.ReadAt(0, absl::MakeSpan(bytes));
  EXPECT_TRUE(got.ok()) << got.status();
  bytes.resize(got.value_or(0));
  return bytes;
}

std::string EnvContractTest::ReadFile(const std::string& name) {
  auto file = tree_->Open(name, OpenKind::kRead, 0);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? Read(**file) : "";
}

TEST_P(EnvContractTest, PiecesLieOneBehindTheOther) {
  auto file = Make("x", "0123456789");
  const std::string_view pieces[] = {"ab", "", "cde", "f"};
  ASSERT_TRUE(file->WriteAt(3, pieces).ok());
  EXPECT_EQ(Read(*file), "012abcdef9");
  EXPECT_EQ(ReadFile("x"), "012abcdef9") << "by another open";
}

TEST_P(EnvContractTest, ALargePieceIsWrittenWhole) {
  std::string bytes((9 << 20) + 17, '\0');  // beyond an object of 4 MiB
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 >> 8);
  auto file = Make("x", bytes);
  EXPECT_TRUE(Read(*file) == bytes);
}

TEST_P(EnvContractTest, AReadIsShortAtTheEndOnly) {
  auto file = Make("x", "abc");
  std::string out(8, '?');
  EXPECT_EQ(*file->ReadAt(1, absl::MakeSpan(out)), 2u);
  EXPECT_EQ(out.substr(0, 2), "bc");
  EXPECT_EQ(*file->ReadAt(3, absl::MakeSpan(out)), 0u);
  EXPECT_EQ(*file->ReadAt(1000, absl::MakeSpan(out)), 0u);
}

TEST_P(EnvContractTest, AGapReadsAsZeros) {
  auto file = Make("x", "abc");
  ASSERT_TRUE(WriteAt(*file, 6, "z").ok());
  EXPECT_EQ(Read(*file), std::string("abc\0\0\0z", 7));
}

TEST_P(EnvContractTest, WhatATruncateCutsOffComesBackAsZeros) {
  auto file = Make("x", "abcdef");
  ASSERT_TRUE(file->Truncate(2).ok());
  EXPECT_EQ(*file->Size(), 2u);
  ASSERT_TRUE(file->Truncate(5).ok());
  EXPECT_EQ(Read(*file), std::string("ab\0\0\0", 5));
}

TEST_P(EnvContractTest, ZerosChangeNoSize) {
  auto file = Make("x", std::string(20000, 'x'));
  ASSERT_TRUE(file->Zero({4096, 8192}).ok());
  ASSERT_TRUE(file->Zero({16000, 4000}).ok());
  ASSERT_TRUE(file->Zero({7, 0}).ok());
  std::string expected(20000, 'x');
  expected.replace(4096, 8192, 8192, '\0');
  expected.replace(16000, 4000, 4000, '\0');
  EXPECT_TRUE(Read(*file) == expected);
}

TEST_P(EnvContractTest, DataIsNeverTakenForAHole) {
  auto file = Make("x", "");
  ASSERT_TRUE(file->Truncate(32 << 20).ok());
  const uint64_t at = 17 << 20;
  ASSERT_TRUE(WriteAt(*file, at, "data").ok());
  uint64_t from = 0;
  bool is_named = false;
  while (true) {
    const auto data = file->NextData(from);
    ASSERT_TRUE(data.ok()) << data.status();
    if (data->length == 0) break;
    ASSERT_GE(data->offset, from);
    is_named = is_named || (data->offset <= at && data->end() >= at + 4);
    from = data->end();
  }
  EXPECT_TRUE(is_named);
  EXPECT_LE(from, uint64_t{32} << 20);
  EXPECT_EQ(file->NextData(uint64_t{32} << 20)->length, 0u);
}

TEST_P(EnvContractTest, BytesInAdvanceAreZerosAtTheEnd) {
  auto file = Make("x", "abc");
  const bool has_grown = file->GrowAhead(10);
  EXPECT_EQ(Read(*file), has_grown ? std::string("abc\0\0\0\0\0\0\0", 10) : "abc");
  EXPECT_FALSE(file->GrowAhead(2)) << "never smaller";
  ASSERT_TRUE(WriteAt(*file, 3, "def").ok());
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_EQ(ReadFile("x").substr(0, 6), "abcdef");
}

TEST_P(EnvContractTest, SeveralFilesAreSyncedTogether) {
  std::vector<std::unique_ptr<EnvFile>> files;
  std::vector<FileSync> syncs;
  for (const char* name : {"a", "b", "c"}) files.push_back(Make(name, std::string(9000, name[0])));
  for (const auto& file : files) syncs.push_back({file.get()});
  syncs[1].kind = FileSync::Kind::kDataAndTimes;
  EXPECT_TRUE(tree_->SyncAll(syncs).ok());
  EXPECT_TRUE(tree_->SyncAll({}).ok());
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(ReadFile(name), std::string(9000, name[0]));
}

TEST_P(EnvContractTest, KindsOfOpenDifferInWhatTheyMake) {
  EXPECT_TRUE(absl::IsNotFound(tree_->Open("x", OpenKind::kRead, 0).status()));
  EXPECT_TRUE(absl::IsNotFound(tree_->Open("x", OpenKind::kWrite, 0).status()));
  EXPECT_TRUE(absl::IsNotFound(tree_->Open("no/x", OpenKind::kCreate, 0600).status()));
  Make("x", "abc");
  auto again = tree_->Open("x", OpenKind::kCreate, 0600);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(Read(**again), "abc");
  EXPECT_EQ(*(*tree_->Open("x", OpenKind::kCreateFresh, 0600))->Size(), 0u);
  EXPECT_TRUE(absl::IsNotFound(tree_->Open("x/y", OpenKind::kRead, 0).status()));
}

TEST_P(EnvContractTest, ADirectoryIsNoFile) {
  ASSERT_TRUE(tree_->MakeDirectory("d", 0700).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(tree_->Open("d", OpenKind::kRead, 0).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(tree_->MakeDirectory("d", 0700)));
}

TEST_P(EnvContractTest, ModesAreThoseThatWereAskedFor) {
  auto file = *tree_->Open("x", OpenKind::kCreate, 0640);
  EXPECT_EQ(file->Access()->mode_bits, 0640u);
  ASSERT_TRUE(file->SetMode(0604, -1).ok());
  EXPECT_EQ(file->Access()->mode_bits, 0604u);
}

TEST_P(EnvContractTest, AnOpenFileCanBeWrittenWhateverItsModeIs) {
  auto file = Make("x", "abc");
  ASSERT_TRUE(file->SetMode(0400, -1).ok());
  EXPECT_TRUE(WriteAt(*file, 0, "A").ok());
  EXPECT_TRUE(file->Truncate(2).ok());
  EXPECT_TRUE(file->Sync().ok());
  EXPECT_EQ(Read(*file), "Ab");
}

TEST_P(EnvContractTest, AnAccessListComesBack) {
  auto file = Make("x", "");
  const FileAccess access{0600, {{NamedAccess::Kind::kUser, 12345, 4}}};
  const absl::Status set = file->SetAccess(access, -1);
  if (absl::IsUnimplemented(set)) GTEST_SKIP() << set;
  ASSERT_TRUE(set.ok()) << set;
  EXPECT_EQ(*file->Access(), access);
  ASSERT_TRUE(file->SetAccess({0640, {}}, -1).ok());
  EXPECT_EQ(*file->Access(), (FileAccess{0640, {}}));
}

TEST_P(EnvContractTest, ARenameReplaces) {
  Make("a", "new");
  auto former = Make("b", "old");
  const uint64_t inode = tree_->Stat("a")->inode;
  ASSERT_TRUE(tree_->Rename("a", "b").ok());
  EXPECT_EQ(ReadFile("b"), "new");
  EXPECT_EQ(tree_->Stat("b")->inode, inode);
  EXPECT_TRUE(absl::IsNotFound(tree_->Stat("a").status()));
  EXPECT_EQ(Read(*former), "old") << "an open file lives on";
}

TEST_P(EnvContractTest, ARenameCrossesDirectories) {
  ASSERT_TRUE(tree_->MakeDirectory("d", 0700).ok());
  Make("a", "abc");
  ASSERT_TRUE(tree_->Rename("a", "d/b").ok());
  ASSERT_TRUE(tree_->SyncDirectory("").ok());
  EXPECT_EQ(ReadFile("d/b"), "abc");
  EXPECT_TRUE(absl::IsNotFound(tree_->Rename("a", "d/c")));
}

TEST_P(EnvContractTest, ALinkIsTheSameFile) {
  auto file = Make("a", "abc");
  ASSERT_TRUE(tree_->Link("a", "b").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(tree_->Link("a", "b")));
  EXPECT_EQ(tree_->Stat("a")->inode, tree_->Stat("b")->inode);
  ASSERT_TRUE(tree_->Remove("a").ok());
  ASSERT_TRUE(WriteAt(*file, 0, "A").ok());
  EXPECT_EQ(ReadFile("b"), "Abc");
}

TEST_P(EnvContractTest, NamesAreListedWithTheirKinds) {
  ASSERT_TRUE(tree_->MakeDirectory("d", 0700).ok());
  Make("d/f", "");
  ASSERT_TRUE(tree_->MakeDirectory("d/e", 0700).ok());
  const auto entries = tree_->List("d");
  ASSERT_TRUE(entries.ok()) << entries.status();
  std::vector<std::string> found;
  for (const DirectoryEntry& entry : *entries) {
    found.push_back(StrCat(entry.name, entry.kind == EntryKind::kDirectory ? "/" : ""));
  }
  EXPECT_THAT(found, UnorderedElementsAre("f", "e/"));
  EXPECT_TRUE(absl::IsNotFound(tree_->List("no").status()));
}

TEST_P(EnvContractTest, ADirectoryWithManyNamesIsListedWhole) {
  for (int i = 0; i < 300; ++i) Make(StrCat("f", i), "");
  EXPECT_EQ(tree_->List("")->size(), 300u);
}

TEST_P(EnvContractTest, OnlyAnEmptyDirectoryCanBeRemoved) {
  ASSERT_TRUE(tree_->MakeDirectory("d", 0700).ok());
  Make("d/f", "");
  EXPECT_FALSE(tree_->RemoveDirectory("d").ok());
  ASSERT_TRUE(tree_->Remove("d/f").ok());
  ASSERT_TRUE(tree_->RemoveDirectory("d").ok());
  EXPECT_TRUE(absl::IsNotFound(tree_->Remove("d")));
}

TEST_P(EnvContractTest, LocksKeepOthersOutUntilTheyGo) {
  auto lock = tree_->Lock("l", LockKind::kExclusive);
  ASSERT_TRUE(lock.ok()) << lock.status();
  auto other = place_->env().OpenTree(place_->root());
  for (const LockKind kind : {LockKind::kExclusive, LockKind::kShared}) {
    EXPECT_TRUE(absl::IsFailedPrecondition((*other)->Lock("l", kind).status()));
  }
  lock->reset();
  EXPECT_TRUE((*other)->Lock("l", LockKind::kExclusive).ok());
}

TEST_P(EnvContractTest, SharedLocksShare) {
  auto one = tree_->Lock("l", LockKind::kShared);
  auto two = tree_->Lock("l", LockKind::kShared);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(tree_->Lock("l", LockKind::kExclusive).status()));
}

TEST_P(EnvContractTest, ATimeChangesWithTheFile) {
  auto file = Make("x", "abc");
  ASSERT_TRUE(file->Sync().ok());
  const FileStat before = *file->Stat();
  EXPECT_EQ(before.size_bytes, 3);
  ASSERT_TRUE(WriteAt(*file, 0, "ABCD").ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(file->Stat()->size_bytes, 4);
  EXPECT_GE(file->Stat()->mtime_ns, before.mtime_ns);
  EXPECT_EQ(tree_->Stat("x")->mtime_ns, file->Stat()->mtime_ns) << "by name as by file";
}

TEST_P(EnvContractTest, ACopyEndsWithItsSource) {
  auto from = Make("a", std::string(3 << 20, 'a'));
  auto to = Make("b", std::string(100, 'b'));
  ASSERT_TRUE(to->CopyFrom(*from, {100, 4 << 20}).ok());
  EXPECT_TRUE(Read(*to) == std::string(100, 'b') + std::string((3 << 20) - 100, 'a'));
}

TEST_P(EnvContractTest, SharedBlocksAreACopyOrRefused) {
  auto from = Make("a", "abc");
  auto to = Make("b", "");
  const absl::Status shared = to->ShareFrom(*from);
  if (absl::IsUnimplemented(shared)) GTEST_SKIP() << shared;
  ASSERT_TRUE(shared.ok()) << shared;
  ASSERT_TRUE(WriteAt(*from, 0, "A").ok());
  EXPECT_EQ(Read(*to), "abc");
}

TEST_P(EnvContractTest, WhatCanBeSharedIsKnownBefore) {
  auto from = Make("a", "abc");
  const size_t before = tree_->List("")->size();
  const absl::StatusOr<bool> can_share = tree_->CanShare(*from);
  EXPECT_EQ(tree_->List("")->size(), before) << "it left something";
  if (!can_share.ok()) {
    EXPECT_TRUE(absl::IsUnimplemented(can_share.status())) << can_share.status();
  } else if (*can_share) {
    EXPECT_TRUE(Make("b", "")->ShareFrom(*from).ok());
  }
}

TEST_P(EnvContractTest, LinksLeadNowhere) {
  ASSERT_TRUE(tree_->MakeDirectory("d", 0700).ok());
  Make("d/x", "abc");
  if (!place_->MakeSymlink("d", "s")) GTEST_SKIP() << "no symbolic links here";
  EXPECT_TRUE(absl::IsInvalidArgument(tree_->Open("s/x", OpenKind::kRead, 0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(tree_->List("s").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(tree_->MakeDirectory("s/e", 0700)));
  EXPECT_TRUE(absl::IsInvalidArgument(tree_->Lock("s/x", LockKind::kShared).status()));
  ASSERT_TRUE(tree_->Remove("s").ok()) << "the link itself";
  EXPECT_EQ(ReadFile("d/x"), "abc");
}

TEST_P(EnvContractTest, SpaceIsKnown) {
  const auto free_bytes = tree_->FreeBytes();
  if (!place_->CountsSpace()) {
    EXPECT_TRUE(absl::IsUnavailable(free_bytes.status())) << free_bytes.status();
    EXPECT_TRUE(absl::IsUnavailable(tree_->TotalBytes().status()));
    return;
  }
  ASSERT_TRUE(free_bytes.ok()) << free_bytes.status();
  EXPECT_GT(*free_bytes, 0u);
  EXPECT_GE(*tree_->TotalBytes(), *free_bytes);
}

}  // namespace h5mirror
