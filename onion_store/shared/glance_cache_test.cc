#include "onion_store/shared/glance_cache.h"

#include "base/strings.h"
#include "gtest/gtest.h"

namespace h5mirror::store {
namespace {

FileSummary Listed(const std::string& name, uint64_t size_bytes = 100) {
  return {name, size_bytes, absl::FromUnixSeconds(1000)};
}

FileInfo InfoAt(CutNumber cut) {
  FileInfo info;
  info.last_cut = cut;
  return info;
}

// A whole look.
void Note(GlanceCache& cache, const FileSummary& listed, CutNumber cut) {
  const GlanceCache::Look look = cache.Begin(listed.name);
  cache.Put(listed, InfoAt(cut), look);
  cache.End(listed.name, look);
}

TEST(GlanceCacheTest, KnowsAFileUntilItIsOpened) {
  GlanceCache cache;
  EXPECT_EQ(cache.Find(Listed("a.h5")), nullptr);
  Note(cache, Listed("a.h5"), 7);
  ASSERT_NE(cache.Find(Listed("a.h5")), nullptr);
  EXPECT_EQ(cache.Find(Listed("a.h5"))->last_cut, 7);
  cache.Forget("b.h5");
  EXPECT_NE(cache.Find(Listed("a.h5")), nullptr);
  cache.Forget("a.h5");
  EXPECT_EQ(cache.Find(Listed("a.h5")), nullptr);
}

TEST(GlanceCacheTest, ALookThatAnOpenHasOvertakenNotesNothing) {
  GlanceCache cache;
  const GlanceCache::Look look = cache.Begin("a.h5");
  cache.Forget("a.h5");
  cache.Put(Listed("a.h5"), InfoAt(7), look);
  cache.End("a.h5", look);
  EXPECT_EQ(cache.Find(Listed("a.h5")), nullptr) << "it may have been written since";
}

TEST(GlanceCacheTest, AnotherHeadIsAnotherFile) {
  GlanceCache cache;
  Note(cache, Listed("a.h5", 100), 7);
  EXPECT_EQ(cache.Find(Listed("a.h5", 101)), nullptr);
  Note(cache, Listed("a.h5", 101), 8);
  EXPECT_EQ(cache.Find(Listed("a.h5", 101))->last_cut, 8);
  EXPECT_EQ(cache.Find(Listed("a.h5", 100)), nullptr);
}

TEST(GlanceCacheTest, OfTwoLooksTheLaterOneCounts) {
  GlanceCache cache;
  const GlanceCache::Look first = cache.Begin("a.h5");
  const GlanceCache::Look second = cache.Begin("a.h5");
  cache.Put(Listed("a.h5"), InfoAt(7), first);
  cache.End("a.h5", first);
  EXPECT_EQ(cache.Find(Listed("a.h5")), nullptr);
  cache.Put(Listed("a.h5"), InfoAt(8), second);
  cache.End("a.h5", second);
  EXPECT_EQ(cache.Find(Listed("a.h5"))->last_cut, 8);
}

TEST(GlanceCacheTest, KeepsTheNamesThatItHasWhereItIsFull) {
  GlanceCache cache(/*bytes_max=*/10000);
  for (int i = 0; i < 100; ++i) Note(cache, Listed(StrCat("file", i, ".h5")), i + 1);
  EXPECT_NE(cache.Find(Listed("file0.h5")), nullptr);
  EXPECT_EQ(cache.Find(Listed("file99.h5")), nullptr);
  cache.Forget("file0.h5");
  Note(cache, Listed("file99.h5"), 100);
  EXPECT_NE(cache.Find(Listed("file99.h5")), nullptr) << "there is room again";
}

}  // namespace
}  // namespace h5mirror::store
