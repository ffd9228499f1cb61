// The changes between two versions. Random histories also compare them with the bytes.
#include "base/env.h"
#include "gmock/gmock.h"
#include "onion_store/file/file_changes.h"
#include "onion_store/testing/changes_check.h"
#include "onion_store/testing/test_place.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kPage = 4096;

class ChangesTest : public testing::Test {
 protected:
  ChangesTest() {
    store_ = OpenStore(place_->env(), place_->root());
    file_ = *store_->OpenOrCreateFile("x.h5", kPage);
  }

  // One version of `content`.
  void Commit(SessionStart start, const std::string& content) {
    Writer writer(file_, start, content_);
    for (uint64_t at = 0; at < content.size(); at += kPage) {
      const std::string page = content.substr(at, kPage);
      if (start == SessionStart::kNewGeneration || at >= content_.size() ||
          content_.substr(at, kPage) != page) {
        ASSERT_TRUE(writer.Write(at, page).ok());
      }
    }
    ASSERT_TRUE(writer.Truncate(content.size()).ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(writer.End().ok());
    content_ = content;
  }
  std::vector<Extent> Changes(VersionNumber from, VersionNumber to) {
    auto reader = file_->OpenChanges(from, to);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? ReadChanges(**reader) : std::vector<Extent>();
  }

  std::unique_ptr<TestPlace> place_ = MakeTestPlace();
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
  std::string content_;
};

TEST_F(ChangesTest, OnlyWhatWasWrittenInBetweenIsTold) {
  std::string content(100 * kPage, 'a');
  Commit(SessionStart::kContinue, content);
  content[10 * kPage + 5] = 'b';
  Commit(SessionStart::kContinue, content);
  content[20 * kPage] = content[21 * kPage] = 'c';
  Commit(SessionStart::kContinue, content);
  content[30 * kPage] = 'd';
  Commit(SessionStart::kContinue, content);
  for (int pass = 0; pass < 2; ++pass) {
    EXPECT_THAT(Changes(1, 1), IsEmpty());
    EXPECT_THAT(Changes(1, 2), ElementsAre(Extent{10 * kPage, kPage}));
    EXPECT_THAT(Changes(3, 2), ElementsAre(Extent{20 * kPage, 2 * kPage}));
    EXPECT_THAT(Changes(2, 0),
                ElementsAre(Extent{20 * kPage, 2 * kPage}, Extent{30 * kPage, kPage}));
    ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
  }
}

TEST_F(ChangesTest, WhatTheLongerOneHasIsAChange) {
  Commit(SessionStart::kContinue, std::string(2 * kPage + 100, 'a'));
  Commit(SessionStart::kContinue, std::string(5 * kPage + 7, 'a'));
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
  EXPECT_THAT(Changes(1, 2), ElementsAre(Extent{2 * kPage, 3 * kPage + 7}));
  EXPECT_THAT(Changes(2, 1), ElementsAre(Extent{2 * kPage, 3 * kPage + 7}));
}

TEST_F(ChangesTest, AFileMadeAgainDiffersWhereItsBytesDo) {
  std::string content(600 * kPage, 'a');
  Commit(SessionStart::kContinue, content);
  content[300 * kPage + 1] = 'b';
  Commit(SessionStart::kNewGeneration, content);
  EXPECT_THAT(Changes(1, 2), ElementsAre(Extent{300 * kPage, kPage}));
  Commit(SessionStart::kNewGeneration, content);
  EXPECT_THAT(Changes(2, 3), IsEmpty());
}

TEST_F(ChangesTest, AVersionThatIsNotThereIsAnError) {
  Commit(SessionStart::kContinue, std::string(kPage, 'a'));
  EXPECT_TRUE(absl::IsNotFound(file_->OpenChanges(1, 7).status()));
}

TEST_F(ChangesTest, RowsThatDoNotFitAreAskedForBlockByBlock) {
  std::string content(2000 * kPage, 'a');
  Commit(SessionStart::kContinue, content);
  for (uint64_t page : {3, 4, 255, 256, 1500}) content[page * kPage] = 'b';
  Commit(SessionStart::kContinue, content);
  content[7 * kPage] = content[900 * kPage] = 'c';
  Commit(SessionStart::kContinue, content);
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
  file_.reset();
  store_.reset();
  auto tree = place_->env().OpenTree(place_->root());
  ASSERT_TRUE(tree.ok());
  SqliteVfs vfs(**tree);
  auto opened = VersionIndex::Open(vfs, **tree, "x.h5.h5m");
  ASSERT_TRUE(opened.ok()) << opened.status();
  std::shared_ptr<VersionIndex> index = *std::move(opened);
  for (size_t rows_max : {2, 1000}) {
    RowChanges rows(index, 1, 1, 2, kPage);
    ASSERT_TRUE(rows.Load(rows_max).ok());
    std::vector<uint64_t> pages;
    for (uint64_t at = 0;;) {
      auto next = rows.NextAt(at);
      ASSERT_TRUE(next.ok()) << next.status();
      if (!*next) break;
      for (at = (*next)->offset; at < (*next)->end(); at += kPage) pages.push_back(at / kPage);
    }
    EXPECT_THAT(pages, ElementsAre(3, 4, 255, 256, 1500)) << rows_max;
  }
}

}  // namespace
}  // namespace h5mirror::store
