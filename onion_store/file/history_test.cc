// Versions found, named, and shown page by page.
#include <string>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/testing/test_place.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kPage = 4096;

class HistoryTest : public testing::Test {
 protected:
  HistoryTest() {
    StoreOptions options;
    options.page_compression = PageCompression::kNone;  // Each page must be where the map says.
    store_ = OpenStore(place_->env(), place_->root(), options);
    file_ = *store_->OpenOrCreateFile("d/x.h5", kPage);
  }

  // One version of `page_count` pages, `pages` of which it fills with `fill`.
  void Commit(SessionStart start, uint64_t page_count, const std::vector<uint64_t>& pages,
              char fill) {
    auto token = file_->Acquire();
    ASSERT_TRUE(file_->Begin(*token, start, Origin{}, {0640}).ok());
    const std::string bytes(kPage, fill);
    for (uint64_t page : pages) {
      Extent extent{page * kPage, kPage};
      std::string_view piece = bytes;
      ASSERT_TRUE(file_->Write(*token, {&extent, 1}, {&piece, 1}).ok());
    }
    CutRequest request;
    request.kind = BarrierKind::kCommit;
    request.size_bytes = page_count * kPage;
    ASSERT_TRUE(file_->Cut(*token, request, nullptr).ok());
    ASSERT_TRUE(file_->End(*token, SessionEnd::kClean).ok());
    ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
  }
  std::vector<PlacedRun> MapOf(VersionNumber version) {
    auto reader = file_->OpenVersion(version);
    EXPECT_TRUE(reader.ok()) << reader.status();
    std::vector<PlacedRun> map;
    for (uint64_t page = 0;;) {
      auto runs = (*reader)->Locate(page, PageSums::kLeaveOut);
      EXPECT_TRUE(runs.ok()) << runs.status();
      if (!runs.ok() || runs->empty()) return map;
      for (const PlacedRun& run : *runs) {
        EXPECT_EQ(run.page, page) << "runs follow each other";
        page = run.page_end();
        if (map.empty() || !map.back().TakeIn(run, kPage)) map.push_back(run);
      }
    }
  }
  // The first byte of each page of the run, read from the place that the run names.
  std::string BytesAt(const PlacedRun& run) {
    const std::string all = place_->Read(run.file);
    std::string bytes;
    for (uint64_t i = 0; i < run.page_count; ++i) bytes += all.at(run.offset + i * kPage);
    return bytes;
  }

  std::unique_ptr<TestPlace> place_ = MakeTestPlace();
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
};

// Five pages, P0 to P4, and three versions: the second changes P1 and P3, the third P1.
TEST_F(HistoryTest, TheMapOfFivePagesInThreeVersions) {
  Commit(SessionStart::kContinue, 5, {0, 1, 2, 3, 4}, 'a');
  Commit(SessionStart::kContinue, 5, {1, 3}, 'b');
  Commit(SessionStart::kContinue, 5, {1}, 'c');
  const auto newest = MapOf(3);
  EXPECT_THAT(newest, ElementsAre(PlacedRun{0, 5, PagePlace::kHead, "d/x.h5", 0}));
  EXPECT_EQ(BytesAt(newest[0]), "acaba");
  for (VersionNumber version : {1, 2}) {
    std::string places, bytes;
    for (const PlacedRun& run : MapOf(version)) {
      places += std::string(run.page_count, run.place == PagePlace::kHead ? 'h' : 'p');
      bytes += BytesAt(run);
      EXPECT_EQ(run.file, run.place == PagePlace::kHead ? "d/x.h5" : "d/x.h5.h5m/pages-000001");
    }
    EXPECT_EQ(places, version == 1 ? "hphph" : "hphhh") << version;
    EXPECT_EQ(bytes, version == 1 ? "aaaaa" : "ababa") << version;
  }
}

TEST_F(HistoryTest, HolesAndSavedZerosAreNowhere) {
  if (!place_->is_here()) GTEST_SKIP() << "CephFS tells no holes: design 048";
  Commit(SessionStart::kContinue, 1 << 20, {0, 1000}, 'a');
  Commit(SessionStart::kContinue, 1 << 20, {700}, 'b');
  std::vector<std::pair<uint64_t, PagePlace>> found;
  for (const PlacedRun& run : MapOf(1)) {
    found.emplace_back(run.page, run.place);
    EXPECT_EQ(run.file.empty(), run.place != PagePlace::kHead);
  }
  EXPECT_THAT(found, testing::Contains(std::pair(uint64_t{0}, PagePlace::kHead)));
  EXPECT_THAT(found, testing::Contains(std::pair(uint64_t{700}, PagePlace::kZeros)));
  EXPECT_THAT(found, testing::Contains(std::pair(uint64_t{1000}, PagePlace::kHead)));
  EXPECT_EQ(MapOf(1).back().page_end(), uint64_t{1} << 20);
  EXPECT_EQ(MapOf(1).back().place, PagePlace::kHole);
}

TEST_F(HistoryTest, TheMapOfAnOlderGenerationNamesItsHead) {
  Commit(SessionStart::kContinue, 2, {0, 1}, 'a');
  Commit(SessionStart::kNewGeneration, 1, {0}, 'b');
  EXPECT_THAT(MapOf(1), ElementsAre(PlacedRun{0, 2, PagePlace::kHead, "d/x.h5.h5m/head-1", 0}));
  EXPECT_THAT(MapOf(2), ElementsAre(PlacedRun{0, 1, PagePlace::kHead, "d/x.h5", 0}));
}

TEST_F(HistoryTest, AMapMayBeginAnywhereAndEndsWithTheVersion) {
  Commit(SessionStart::kContinue, 5, {0, 1, 2, 3, 4}, 'a');
  auto reader = *file_->OpenVersion(1);
  EXPECT_THAT(*reader->Locate(3, PageSums::kLeaveOut),
              ElementsAre(PlacedRun{3, 2, PagePlace::kHead, "d/x.h5", 3 * kPage}));
  EXPECT_TRUE(reader->Locate(5, PageSums::kLeaveOut)->empty());
  EXPECT_TRUE(reader->Locate(UINT64_MAX, PageSums::kLeaveOut)->empty());
}

TEST_F(HistoryTest, AVersionIsFoundByPlaceTimeAndTag) {
  Commit(SessionStart::kContinue, 1, {0}, 'a');
  Commit(SessionStart::kContinue, 1, {0}, 'b');
  const absl::Time second = file_->GetVersion(2)->server_time;
  EXPECT_EQ(file_->FindVersionBack(0)->version, 2);
  EXPECT_EQ(file_->FindVersionBack(1)->version, 1);
  EXPECT_THAT(std::string(file_->FindVersionBack(2).status().message()),
              HasSubstr("only 2 versions"));
  EXPECT_EQ(file_->FindVersionAt(second)->version, 2);
  EXPECT_EQ(file_->FindVersionAt(second - absl::Nanoseconds(1))->version, 1);
  EXPECT_TRUE(absl::IsNotFound(file_->FindVersionAt(second - absl::Hours(9)).status()));
  EXPECT_TRUE(absl::IsNotFound(file_->FindVersionTagged("published").status()));
  ASSERT_EQ(*file_->Tag(1, "published", TagMode::kKeep), 0);
  EXPECT_EQ(file_->FindVersionTagged("published")->version, 1);
  EXPECT_THAT(file_->FindVersionTagged("published")->tags, ElementsAre("published"));
}

TEST_F(HistoryTest, TagsStayWithAReopenedFile) {
  Commit(SessionStart::kContinue, 1, {0}, 'a');
  ASSERT_TRUE(file_->Tag(0, "v1.0", TagMode::kKeep).ok());
  file_.reset();
  store_.reset();
  store_ = OpenStore(place_->env(), place_->root());
  file_ = *store_->OpenFile("d/x.h5");
  EXPECT_THAT(file_->GetVersion(0)->tags, ElementsAre("v1.0"));
  EXPECT_THAT(file_->Info()->newest_version.tags, ElementsAre("v1.0"));
  EXPECT_EQ(*file_->Untag("v1.0"), 1);
  EXPECT_TRUE(absl::IsNotFound(file_->Untag("v1.0").status()));
}

TEST_F(HistoryTest, AFileWithoutVersionsHasNothingToFindOrTag) {
  for (const absl::Status& status :
       {file_->FindVersionBack(0).status(), file_->FindVersionAt(absl::Now()).status(),
        file_->FindVersionTagged("a").status(), file_->Tag(0, "a", TagMode::kKeep).status(),
        file_->Untag("a").status()}) {
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
  }
}

TEST(CheckTagTest, TagsAreShortWordsAndNoNumbers) {
  for (const char* tag : {"published", "v1.0", "2026-11", "-", "a_b", "1a"}) {
    EXPECT_TRUE(CheckTag(tag).ok()) << tag;
  }
  EXPECT_TRUE(CheckTag(std::string(100, 'a')).ok());
  for (const std::string& tag : {std::string(), std::string("12"), std::string("a b"),
                                 std::string("a@b"), std::string("a/b"), std::string("\xc3\xa9"),
                                 std::string("a\0b", 3), std::string(101, 'a')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckTag(tag))) << tag;
  }
}

// The n-th change of the disk fails. Then the tag exists or not, and the file goes on or is opened
// again.
TEST(TagFaultTest, ADiskThatFailsLosesNoTagThatWasAcked) {
  for (uint64_t call = 0;; ++call) {
    FaultEnv env;
    auto store = OpenStore(env, "/");
    auto file = *store->OpenOrCreateFile("x.h5", kPage);
    Writer writer(file, SessionStart::kContinue);
    ASSERT_TRUE(writer.Write(0, "bytes").ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(writer.End().ok());
    ASSERT_TRUE(file->WaitApplied(absl::Seconds(60)).ok());
    ASSERT_TRUE(file->Tag(1, "first", TagMode::kKeep).ok());
    env.FailCall(call, absl::InternalError("the disk failed"));
    const absl::Status tagged = file->Tag(1, "second", TagMode::kKeep).status();
    if (!env.fault_met()) {
      EXPECT_GT(call, 1u) << "tagging writes and syncs";
      return;
    }
    file.reset();
    file = *store->OpenFile("x.h5");
    EXPECT_EQ(file->FindVersionTagged("first")->version, 1);
    if (tagged.ok()) {
      EXPECT_EQ(file->FindVersionTagged("second")->version, 1);
    }
    EXPECT_TRUE(file->Tag(1, "third", TagMode::kKeep).ok());
  }
}

}  // namespace
}  // namespace h5mirror::store
