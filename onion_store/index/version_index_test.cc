#include "onion_store/index/version_index.h"

#include <algorithm>
#include <map>
#include <random>

#include "base/strings.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

class VersionIndexTest : public testing::Test {
 protected:
  VersionIndexTest() : tree_(*env_.OpenTree("/")), vfs_(*tree_) {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
    row_.file_id = FileId{7};
    row_.page_size_bytes = 512;
    row_.generation = 1;
    row_.durable_cut = 1;
    row_.cut_reserved = 1000;
    VersionRow first = Version(1, 1000);
    auto made = VersionIndex::Create(vfs_, *tree_, "d", row_, {&first, 1}, GenerationRow{1, 1, 50});
    EXPECT_TRUE(made.ok()) << made.status();
    index_ = *std::move(made);
  }
  static VersionRow Version(VersionNumber number, uint64_t size_bytes) {
    VersionRow row;
    row.info.version = row.info.cut = number;
    row.info.generation = 1;
    row.info.size_bytes = size_bytes;
    row.info.provenance.comment = "it's " + std::to_string(number);
    return row;
  }
  absl::Status Add(std::vector<PageRun> runs) { return index_->AddPages(row_, runs); }
  void Reopen() {
    index_.reset();
    auto opened = VersionIndex::Open(vfs_, *tree_, "d");
    ASSERT_TRUE(opened.ok()) << opened.status();
    index_ = *std::move(opened);
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  SqliteVfs vfs_;
  FileRow row_;
  std::unique_ptr<VersionIndex> index_;
};

TEST_F(VersionIndexTest, IsMadeWithTheFirstCutInItAndNoLeftovers) {
  Reopen();
  EXPECT_EQ(index_->ReadFileRow()->durable_cut, 1);
  EXPECT_EQ(index_->ReadFileRow()->file_id, FileId{7});
  EXPECT_EQ(index_->GetVersion(1)->info.provenance.comment, "it's 1");
  EXPECT_EQ(index_->GetGeneration(1)->direct_end_bytes, 50u);
  std::vector<std::string> names;
  auto entries = tree_->List("d");
  for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("index", "index-wal"));
}

TEST_F(VersionIndexTest, ACommitIsWholeAfterAnyCrash) {
  const size_t before = env_.change_count();
  row_.durable_cut = 2;
  VersionRow second = Version(2, 2000);
  ASSERT_TRUE(index_->CommitCuts(row_, {&second, 1}, std::nullopt).ok());
  const size_t after = env_.change_count();
  for (size_t changes = before; changes <= after; ++changes) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      auto crashed = env_.Crash(changes, seed);
      auto tree = *crashed->OpenTree("/");
      SqliteVfs vfs(*tree);
      auto index = VersionIndex::Open(vfs, *tree, "d");
      if (changes < after && absl::IsNotFound(index.status())) continue;  // "d" was never synced.
      ASSERT_TRUE(index.ok()) << index.status();
      const CutNumber cut = (*index)->ReadFileRow()->durable_cut;
      EXPECT_EQ((*index)->Newest()->info.version, cut);
      if (changes == after) {
        EXPECT_EQ(cut, 2);
      }
    }
  }
}

TEST_F(VersionIndexTest, ListsFromTheNewestDownwards) {
  std::vector<VersionRow> more{Version(2, 10), Version(3, 5000), Version(4, 20)};
  more[1].request_id = std::array<uint8_t, 16>{9};
  ASSERT_TRUE(index_->CommitCuts(row_, more, std::nullopt).ok());
  auto list = index_->List({.before = 4}, 2);
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[0].version, 3);
  EXPECT_EQ((*list)[1].version, 2);
  EXPECT_EQ(*index_->CountUpTo(3), 3);
  EXPECT_EQ(*index_->SizeMax(1), 5000u);
  EXPECT_EQ(index_->FindRequest({9})->info.version, 3);
  EXPECT_EQ(index_->FindCut(4)->info.version, 4);
  EXPECT_TRUE(absl::IsNotFound(index_->FindCut(99).status()));
}

TEST_F(VersionIndexTest, OfRunsAtOnePlaceTheOldestThatIsNewEnoughCounts) {
  ASSERT_TRUE(
      Add({{0, 8, 1, 1, 100}, {0, 8, 3, 1, 300}, {0, 8, 5, 1, 500}, {2, 8, 2, 1, 200}}).ok());
  auto found = index_->FindPages(1, 2, 0, 100);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_THAT(*found,
              testing::UnorderedElementsAre(PageRun{0, 8, 3, 1, 300}, PageRun{2, 8, 2, 1, 200}));
  EXPECT_EQ(OwnersOf(*found, 8, 1)[0]->version, 2) << "the smallest version wins";
  EXPECT_EQ(OwnersOf(*found, 12, 1)[0], nullptr);
  EXPECT_TRUE(index_->FindPages(1, 6, 0, 100)->empty());
  EXPECT_TRUE(index_->FindPages(2, 1, 0, 100)->empty()) << "of another generation";
}

TEST_F(VersionIndexTest, ARunIsFoundFromItsMiddle) {
  ASSERT_TRUE(Add({{8, 256, 1, 1, 0}}).ok());
  EXPECT_EQ(index_->FindPages(1, 1, 300, 301)->size(), 1u);
  EXPECT_TRUE(index_->FindPages(1, 1, 512, 600)->empty());
  EXPECT_EQ(**index_->NextPage(1, 1, 0), 256u);
  EXPECT_EQ(**index_->NextPage(1, 1, 300), 300u);
  EXPECT_FALSE((*index_->NextPage(1, 1, 512)).has_value());
}

TEST_F(VersionIndexTest, ChangesComeByBlockAndNotBeyondTheLimit) {
  ASSERT_TRUE(Add({{0, 300, 4, 1, 1}, {0, 5, 3, 1, 2}, {0, 7, 2, 1, 3}, {0, 1, 1, 1, 4}}).ok());
  auto changes = index_->FindChanges(1, 2, 3);
  ASSERT_TRUE(changes.ok() && changes->has_value()) << changes.status();
  std::vector<uint64_t> pages;
  for (const PageRun& run : **changes) pages.push_back(run.page);
  EXPECT_THAT(pages, testing::ElementsAre(7, 5, 300)) << "version 1's page 1 is too old";
  EXPECT_FALSE(index_->FindChanges(1, 2, 2)->has_value());
}

TEST_F(VersionIndexTest, RandomRunsAreFoundAsAModelFindsThem) {
  std::mt19937_64 random(3);
  std::map<std::pair<uint64_t, VersionNumber>, PageRun> model;  // by page and version
  std::vector<PageRun> runs;
  for (uint64_t i = 0; i < 3000; ++i) {
    const int level = static_cast<int>(random() % 3);
    PageRun run{level, random() % 64 >> level << level,
                static_cast<VersionNumber>(1 + random() % 60), 1, i};
    bool free = true;
    for (uint64_t page = run.page; page < run.page_end(); ++page) {
      free = free && !model.contains({page, run.version});
    }
    if (!free) continue;
    for (uint64_t page = run.page; page < run.page_end(); ++page) model[{page, run.version}] = run;
    runs.push_back(run);
  }
  ASSERT_TRUE(Add(runs).ok());
  for (VersionNumber version : {1, 20, 40, 60, 61}) {
    auto found = index_->FindPages(1, version, 3, 50);
    ASSERT_TRUE(found.ok()) << found.status();
    const auto owners = OwnersOf(*found, 3, 47);
    for (uint64_t page = 3; page < 50; ++page) {
      auto wanted = model.lower_bound({page, version});
      const bool any = wanted != model.end() && wanted->first.first == page;
      ASSERT_EQ(owners[page - 3] != nullptr, any) << page << "@" << version;
      if (any) {
        EXPECT_EQ(*owners[page - 3], wanted->second) << page << "@" << version;
      }
    }
  }
}

TEST_F(VersionIndexTest, AFullDiskLeavesWhatWasThere) {
  env_.SetCapacity(1);
  EXPECT_TRUE(absl::IsResourceExhausted(Add({{0, 1, 1, 1, 0}})));
  env_.SetCapacity(UINT64_MAX);
  EXPECT_TRUE(index_->FindPages(1, 1, 0, 10)->empty());
  EXPECT_TRUE(Add({{0, 1, 1, 1, 0}}).ok());
}

TEST_F(VersionIndexTest, DamageAndNewerFormatsAreNamed) {
  index_.reset();
  auto file = *tree_->Open("d/index", OpenKind::kWrite, 0);
  ASSERT_TRUE(WriteAt(*file, 60, std::string("\0\0\0\5", 4)).ok());  // user_version, big-endian
  auto newer = VersionIndex::Open(vfs_, *tree_, "d");
  EXPECT_TRUE(absl::IsFailedPrecondition(newer.status())) << newer.status();
  EXPECT_THAT(std::string(newer.status().message()), HasSubstr("format 5"));
  ASSERT_TRUE(WriteAt(*file, 0, std::string(4096, 'x')).ok());
  EXPECT_TRUE(absl::IsDataLoss(VersionIndex::Open(vfs_, *tree_, "d").status()));
  EXPECT_TRUE(absl::IsNotFound(VersionIndex::Open(vfs_, *tree_, "e").status()));
}

TEST_F(VersionIndexTest, FindsByTimeAndByPlaceAcrossNumbersThatAreGone) {
  std::vector<VersionRow> more;
  std::vector<std::pair<int64_t, VersionNumber>> model{{0, 1}};  // seconds, version
  std::mt19937_64 random(5);
  VersionNumber number = 1;
  for (int i = 0; i < 300; ++i) {
    number += 1 + static_cast<VersionNumber>(random() % 4);
    const int64_t seconds = model.back().first + 1 + static_cast<int64_t>(random() % 10);
    more.push_back(Version(number, 10));
    more.back().info.server_time = absl::FromUnixSeconds(seconds);
    model.emplace_back(seconds, number);
  }
  ASSERT_TRUE(index_->CommitCuts(row_, more, std::nullopt).ok());
  for (int64_t seconds = 0; seconds <= model.back().first + 1; ++seconds) {
    const auto wanted = std::prev(
        std::upper_bound(model.begin(), model.end(), std::pair(seconds, VersionNumber{INT64_MAX})));
    ASSERT_EQ(*index_->FindTime(absl::FromUnixSeconds(seconds)), wanted->second) << seconds;
  }
  EXPECT_EQ(*index_->FindTime(absl::UnixEpoch() - absl::Nanoseconds(1)), 0);
  EXPECT_EQ(*index_->FindTime(absl::InfiniteFuture()), number);
  for (int64_t back = 0; back <= 300; ++back) {
    ASSERT_EQ(*index_->FindBack(back), model[300 - static_cast<size_t>(back)].second) << back;
  }
  EXPECT_EQ(*index_->FindBack(301), 0);
}

TEST_F(VersionIndexTest, ListsTheVersionsOfATime) {
  std::vector<VersionRow> more;
  for (VersionNumber number = 2; number <= 9; ++number) {
    more.push_back(Version(number, 10));
    more.back().info.server_time = absl::FromUnixSeconds(10 * number);
  }
  ASSERT_TRUE(index_->CommitCuts(row_, more, std::nullopt).ok());
  auto numbers = [&](VersionRange range, size_t limit) {
    std::vector<VersionNumber> found;
    auto listed = index_->List(range, limit);
    EXPECT_TRUE(listed.ok()) << listed.status();
    for (const VersionInfo& info : *listed) found.push_back(info.version);
    return found;
  };
  const absl::Time since = absl::FromUnixSeconds(30), until = absl::FromUnixSeconds(59);
  EXPECT_THAT(numbers({.since = since, .until = until}, 9), testing::ElementsAre(5, 4, 3));
  EXPECT_THAT(numbers({.before = 5, .since = since, .until = until}, 9),
              testing::ElementsAre(4, 3));
  EXPECT_THAT(numbers({.until = until}, 2), testing::ElementsAre(5, 4));
  EXPECT_THAT(numbers({.since = until, .until = until}, 9), testing::IsEmpty());
  EXPECT_THAT(numbers({.until = absl::UnixEpoch() - absl::Seconds(1)}, 9), testing::IsEmpty());
}

TEST_F(VersionIndexTest, ANumberThatCannotBeIsNamedWithItsFile) {
  const auto damage = [this](const char* sql) {
    index_.reset();
    auto database = *SqliteDatabase::Open(vfs_.name(), "d/index", SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(database->Execute("PRAGMA locking_mode = EXCLUSIVE").ok());
    ASSERT_TRUE(database->Execute(sql).ok());
    database.reset();
    Reopen();
  };
  damage("UPDATE file SET pages_segment = 0");
  const absl::Status row = index_->ReadFileRow().status();
  EXPECT_TRUE(absl::IsDataLoss(row));
  EXPECT_THAT(row.ToString(),
              testing::HasSubstr("d/index is damaged: its file has a pages_segment of 0"));
  EXPECT_THAT(row.ToString(), testing::HasSubstr("put back a copy"));
  damage("UPDATE version SET cut = -7");
  const absl::Status version = index_->GetVersion(1).status();
  EXPECT_TRUE(absl::IsDataLoss(version));
  EXPECT_THAT(version.ToString(),
              testing::HasSubstr("d/index is damaged: version 1 has the cut -7"));
}

TEST_F(VersionIndexTest, ATagIsOfOneVersionAndMovesOnlyWhenTold) {
  std::vector<VersionRow> more{Version(2, 10), Version(3, 10)};
  ASSERT_TRUE(index_->CommitCuts(row_, more, std::nullopt).ok());
  EXPECT_EQ(*index_->SetTag(1, "b", TagMode::kKeep), 0);
  EXPECT_EQ(*index_->SetTag(1, "a", TagMode::kKeep), 0);
  EXPECT_EQ(*index_->SetTag(1, "a", TagMode::kKeep), 1) << "again changes nothing";
  EXPECT_TRUE(absl::IsAlreadyExists(index_->SetTag(3, "a", TagMode::kKeep).status()));
  EXPECT_EQ(*index_->SetTag(3, "a", TagMode::kMove), 1);
  EXPECT_TRUE(absl::IsNotFound(index_->SetTag(4, "c", TagMode::kKeep).status()));
  Reopen();
  EXPECT_EQ(*index_->FindTag("a"), 3);
  EXPECT_EQ(*index_->FindTag("c"), 0);
  auto list = index_->List({}, 9);
  ASSERT_EQ(list->size(), 3u);
  EXPECT_THAT((*list)[0].tags, testing::ElementsAre("a"));
  EXPECT_THAT((*list)[1].tags, testing::IsEmpty());
  EXPECT_THAT((*list)[2].tags, testing::ElementsAre("b"));
  EXPECT_EQ(*index_->RemoveTag("a"), 3);
  EXPECT_EQ(*index_->RemoveTag("a"), 0);
}

TEST_F(VersionIndexTest, AVersionAndAFileHaveOnlySoManyTags) {
  std::vector<VersionRow> more{Version(2, 10), Version(3, 10)};
  ASSERT_TRUE(index_->CommitCuts(row_, more, std::nullopt).ok());
  for (int64_t i = 0; i < 100; ++i)
    ASSERT_TRUE(index_->SetTag(1, StrCat("t", i), TagMode::kKeep).ok());
  for (const TagMode mode : {TagMode::kKeep, TagMode::kMove}) {
    const absl::Status refused = index_->SetTag(1, "one-more", mode).status();
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("at most 100"));
  }
  EXPECT_EQ(*index_->SetTag(1, "t0", TagMode::kKeep), 1) << "it has that one";
  EXPECT_EQ(*index_->SetTag(2, "t0", TagMode::kMove), 1);
  EXPECT_EQ(*index_->SetTag(1, "one-more", TagMode::kKeep), 0) << "there is room again";
  index_.reset();
  {
    // Rows of a program that knew no limits stay.
    auto database = SqliteDatabase::Open(vfs_.name(), "d/index", SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(database.ok()) << database.status();
    const absl::Status filled = (*database)->Execute(
        "PRAGMA locking_mode = EXCLUSIVE; WITH RECURSIVE n(i) AS (SELECT 1"
        " UNION ALL SELECT i + 1 FROM n WHERE i < 15000)"
        " INSERT INTO tags SELECT 'old' || i, 3 FROM n;");
    ASSERT_TRUE(filled.ok()) << filled;
  }
  Reopen();
  EXPECT_EQ(index_->TagsOf(3)->size(), 15'000u);
  const absl::Status refused = index_->SetTag(2, "another", TagMode::kKeep).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("at most 10000"));
  EXPECT_EQ(*index_->SetTag(2, "old1", TagMode::kMove), 3);
}

TEST_F(VersionIndexTest, ATagSurvivesAnyCrashOnceItIsSet) {
  ASSERT_TRUE(tree_->SyncDirectory("").ok());
  ASSERT_TRUE(index_->SetTag(1, "old", TagMode::kKeep).ok());
  const size_t before = env_.change_count();
  ASSERT_TRUE(index_->SetTag(1, "new", TagMode::kKeep).ok());
  const size_t after = env_.change_count();
  for (size_t changes = before; changes <= after; ++changes) {
    for (uint64_t seed = 0; seed < 8; ++seed) {
      auto crashed = env_.Crash(changes, seed);
      auto tree = *crashed->OpenTree("/");
      SqliteVfs vfs(*tree);
      auto index = VersionIndex::Open(vfs, *tree, "d");
      ASSERT_TRUE(index.ok()) << index.status();
      EXPECT_EQ(*(*index)->FindTag("old"), 1);
      if (changes == after) {
        EXPECT_EQ(*(*index)->FindTag("new"), 1);
      }
    }
  }
}

SourceVersion SourceOfKind(SourceKind kind, VersionNumber version) {
  SourceVersion source;
  source.kind = kind;
  source.file_id = FileId{9};
  source.name = "other.h5";
  source.version = version;
  source.cut = 40 + version;
  source.time = absl::FromUnixSeconds(1'000'000);
  source.claimed_user = "anna";
  return source;
}

TEST_F(VersionIndexTest, AVersionTellsOfItsSourceUntilItIsDropped) {
  EXPECT_FALSE(index_->GetVersion(1)->info.source.has_value());
  EXPECT_EQ(*index_->LastPromotedFrom(FileId{9}), 0);
  for (const VersionNumber number : {2, 3, 4}) {
    VersionRow row = Version(number, 1000);
    if (number < 4) row.info.source = SourceOfKind(SourceKind::kPromotion, number);
    ASSERT_TRUE(index_->CommitCuts(row_, {&row, 1}, std::nullopt).ok());
  }
  Reopen();
  EXPECT_EQ(index_->GetVersion(3)->info.source, SourceOfKind(SourceKind::kPromotion, 3));
  EXPECT_EQ(*index_->LastPromotedFrom(FileId{9}), 3);
  EXPECT_EQ(*index_->LastPromotedFrom(FileId{9}, 3), 2);
  EXPECT_EQ(*index_->LastPromotedFrom(FileId{9}, 2), 0);
  EXPECT_EQ(*index_->LastPromotedFrom(FileId{8}), 0);
  EXPECT_FALSE(index_->ForkedFrom()->has_value());
  ASSERT_TRUE(index_->DropVersions({3}).ok());
  EXPECT_FALSE(index_->SourceOf(3)->has_value());
  EXPECT_EQ(*index_->LastPromotedFrom(FileId{9}), 2);
  EXPECT_TRUE(index_->CheckSources().ok());
}

TEST_F(VersionIndexTest, AForkTellsOfItsSourceForEver) {
  ASSERT_TRUE(tree_->MakeDirectory("f", 0700).ok());
  VersionRow first = Version(1, 1000);
  first.info.source = SourceOfKind(SourceKind::kFork, 12);
  index_ = *VersionIndex::Create(vfs_, *tree_, "f", row_, {&first, 1}, GenerationRow{1, 1, 50});
  VersionRow second = Version(2, 1000);
  ASSERT_TRUE(index_->CommitCuts(row_, {&second, 1}, std::nullopt).ok());
  ASSERT_TRUE(index_->DropVersions({1}).ok());
  EXPECT_EQ(*index_->ForkedFrom(), first.info.source);
}

TEST_F(VersionIndexTest, ADamagedSourceIsNamedAndKeepsNoVersionFromBeingRead) {
  VersionRow second = Version(2, 1000);
  second.info.source = SourceOfKind(static_cast<SourceKind>(9), 5);
  ASSERT_TRUE(index_->CommitCuts(row_, {&second, 1}, std::nullopt).ok());
  const auto found = index_->GetVersion(2);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_FALSE(found->info.source.has_value());
  for (const absl::Status& damage : {index_->SourceOf(2).status(), index_->CheckSources()}) {
    EXPECT_TRUE(absl::IsDataLoss(damage)) << damage;
    EXPECT_THAT(std::string(damage.message()), HasSubstr("the source of version 2 has the kind 9"));
  }
}

GroupCut CutOfGroup(uint64_t number) {
  return {.id = {4}, .number = number, .whole_number = 0, .members = {"m.h5", "/other/r.h5"}};
}

TEST_F(VersionIndexTest, AVersionIsFoundByItsGroupsCutUntilItIsDropped) {
  EXPECT_EQ(*index_->FindGroupCut(CutOfGroup(1)), 0);
  for (const VersionNumber number : {2, 3, 4}) {
    VersionRow row = Version(number, 1000);
    // A rollback has the cut of its target version.
    row.info.group = CutOfGroup(number == 4 ? 1 : static_cast<uint64_t>(number) - 1);
    ASSERT_TRUE(index_->CommitCuts(row_, {&row, 1}, std::nullopt).ok());
  }
  Reopen();
  EXPECT_EQ(*index_->FindGroupCut(CutOfGroup(1)), 4);
  EXPECT_EQ(*index_->FindGroupCut(CutOfGroup(2)), 3);
  GroupCut other = CutOfGroup(2);
  other.id = {5};
  EXPECT_EQ(*index_->FindGroupCut(other), 0);
  ASSERT_TRUE(index_->DropVersions({3, 4}).ok());
  EXPECT_EQ(*index_->FindGroupCut(CutOfGroup(2)), 0);
  EXPECT_EQ(*index_->FindGroupCut(CutOfGroup(1)), 2);
  EXPECT_TRUE(index_->CheckGroups().ok());
}

TEST_F(VersionIndexTest, AVersionTellsItsGroupAndAListLeavesTheMembersOut) {
  VersionRow second = Version(2, 1000);
  second.info.group = CutOfGroup(7);
  ASSERT_TRUE(index_->CommitCuts(row_, {&second, 1}, std::nullopt).ok());
  Reopen();
  EXPECT_EQ(index_->GetVersion(2)->info.group, CutOfGroup(7));
  EXPECT_EQ(index_->Newest()->info.group, CutOfGroup(7));
  EXPECT_FALSE(index_->GetVersion(1)->info.group.has_value());
  const std::vector<VersionInfo> listed = *index_->List({}, 10);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0].group->number, 7u);
  EXPECT_THAT(listed[0].group->members, testing::IsEmpty());
  EXPECT_FALSE(listed[1].group.has_value());
}

TEST_F(VersionIndexTest, ADamagedGroupIsNamedAndKeepsNoVersionFromBeingRead) {
  VersionRow second = Version(2, 1000);
  second.info.group = CutOfGroup(0);
  ASSERT_TRUE(index_->CommitCuts(row_, {&second, 1}, std::nullopt).ok());
  EXPECT_FALSE(index_->GetVersion(2)->info.group.has_value());
  EXPECT_FALSE(index_->Newest()->info.group.has_value());
  const absl::Status damage = index_->CheckGroups();
  EXPECT_TRUE(absl::IsDataLoss(damage)) << damage;
  EXPECT_THAT(std::string(damage.message()), HasSubstr("cut 0 of a group"));
}

TEST_F(VersionIndexTest, AnIndexOfAnOlderProgramLearnsOfTags) {
  index_.reset();
  {
    auto database = SqliteDatabase::Open(vfs_.name(), "d/index", SQLITE_OPEN_READWRITE);
    ASSERT_TRUE(database.ok()) << database.status();
    const absl::Status dropped =
        (*database)->Execute("PRAGMA locking_mode = EXCLUSIVE; DROP TABLE tags;");
    ASSERT_TRUE(dropped.ok()) << dropped;
  }
  Reopen();
  EXPECT_THAT(*index_->TagsOf(1), testing::IsEmpty());
  EXPECT_EQ(*index_->SetTag(1, "a", TagMode::kKeep), 0);
  Reopen();
  EXPECT_THAT(*index_->TagsOf(1), testing::ElementsAre("a"));
}

}  // namespace
}  // namespace h5mirror::store
