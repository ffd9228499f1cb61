// The worked examples of docs/reference/format.md: the code that each describes makes it, or reads
// it.
#include <fstream>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"
#include "base/crc32c.h"
#include "base/dirty_map.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/embedded/cut_journal.h"
#include "onion_store/metadata_map.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/pages/segment_object.h"
#include "onion_store/pages/sums_file.h"
#include "onion_store/shared/token_source.h"
#include "onion_store/stage/stage_log.h"
#include "onion_store/testing/test_cut_journal.h"

namespace h5mirror::store {
namespace {

using ::testing::ElementsAre;

// The bytes of the hex dumps in the section `title`. A line is four spaces, an offset, two spaces,
// bytes in hex; "..." ends them.
std::string Dumped(const std::string& title) {
  std::ifstream page(H5M_FORMAT_MD);
  std::string line, bytes;
  bool inside = false;
  while (std::getline(page, line)) {
    if (line.starts_with("## ")) inside = line == "## " + title;
    if (!inside || !line.starts_with("    0") || line.size() < 12) continue;
    for (const auto& word : absl::StrSplit(line.substr(10, 48), ' ', absl::SkipEmpty())) {
      if (word.size() != 2) break;
      bytes += absl::HexStringToBytes(word);
    }
  }
  EXPECT_FALSE(bytes.empty()) << "no dump in \"" << title << "\"";
  return bytes;
}

// 00 01 .. 0f, or from `first` on.
Bytes16 Counting(uint8_t first = 0) {
  Bytes16 bytes{};
  for (uint8_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(first + i);
  return bytes;
}

class FormatPageTest : public testing::Test {
 protected:
  FormatPageTest() : tree_(*env_.OpenTree("/")) {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
};

TEST_F(FormatPageTest, StageRecords) {
  StageLog log(*tree_, "d", Counting());
  const Extent extent{4096, 5};
  const std::string_view hello = "hello";
  ASSERT_TRUE(log.AppendWrite(1, 41, {&extent, 1}, {&hello, 1}).ok());
  ASSERT_TRUE(log.AppendCut(1, 42, 4101, {}).ok());
  EXPECT_EQ(ContentOf(*tree_, "d/stage-000001"), Dumped("Stage records"));
}

TEST_F(FormatPageTest, PagesRecords) {
  constexpr uint32_t kPageBytes = 512;
  PageSegments pages(*tree_, "d", Counting(), kPageBytes, 1, 0);
  const std::string page(kPageBytes, 'a');
  const uint32_t crc = Crc32c(page);
  EXPECT_EQ(crc, 0x6f32a61fu);
  ASSERT_TRUE(pages.Append(1, 0, 3, 1, page, {&crc, 1}).ok());
  ASSERT_TRUE(pages.Sync().ok());
  const std::string dumped = Dumped("Pages records");  // It has only the beginning of the page.
  const std::string made = ContentOf(*tree_, "d/pages-000001");
  EXPECT_EQ(made.substr(0, dumped.size()), dumped);
  EXPECT_EQ(made.size(), 0x244u);
}

TEST_F(FormatPageTest, ObjectsOfAnArchive) {
  // The segment of the example above.
  std::string bytes = Dumped("Pages records");
  bytes.resize(0x44 + 512, 'a');
  ArchivedSegment segment{
      1, "", kSegmentObjectHeaderBytes, bytes.size(), Crc32c(bytes), ArchiveState::kArchived};
  EXPECT_EQ(SegmentObjectHeader(Counting(), 512, segment), Dumped("Objects of an archive"));
}

TEST_F(FormatPageTest, Sums) {
  SumsFile sums(*tree_->Open("d/sums-1", OpenKind::kCreate, 0600), 512);
  std::string head(3 * 512, '\0');
  head.replace(0, 512, std::string(512, 'a'));
  head.replace(1024, 5, "hello");
  const std::vector<uint32_t> entries = sums.SumsOf(head);
  EXPECT_THAT(entries, ElementsAre(0x5fce4bdf, 0, 0x04589288));
  EXPECT_EQ(sums.CrcOf(entries[2]), 0x34a47f48u);
  ASSERT_TRUE(sums.Write(0, entries).ok());
  EXPECT_EQ(ContentOf(*tree_, "d/sums-1"), Dumped("Sums"));
}

TEST_F(FormatPageTest, Metadata) {
  MetadataMap map;
  const Extent extents[] = {{0, 4096}, {40960, 8192}};
  map.Add(extents);
  EXPECT_EQ(map.TakeChanged(), Dumped("Metadata"));
}

TEST_F(FormatPageTest, Tokens) {
  ASSERT_TRUE(tree_->MakeDirectory(".h5mirror", 0700).ok());
  TokenSource tokens(*tree_, TokenSource::Keeping::kDurable);
  ASSERT_TRUE(tokens.Load().ok());
  EXPECT_EQ(*tokens.Next(), 1u);
  EXPECT_EQ(ContentOf(*tree_, ".h5mirror/tokens"), Dumped("Tokens"));
}

// Only read: the inode and times of a written head cannot be chosen.
TEST_F(FormatPageTest, EditJournal) {
  ASSERT_TRUE(tree_->MakeDirectory("x.h5.h5m", 0700).ok());
  ASSERT_TRUE(tree_->Open("x.h5", OpenKind::kCreate, 0600).ok());
  auto file = *tree_->Open("x.h5.h5m/journal", OpenKind::kCreate, 0600);
  ASSERT_TRUE(WriteAt(*file, 0, Dumped("Edit journal")).ok());
  const auto left = ReadJournal(*tree_, "x.h5");
  ASSERT_TRUE(left.ok() && left->is_committed) << left.status();
  EXPECT_EQ(left->cut.inode, 4711u);
  EXPECT_EQ(left->cut.size_before, 16u);
  EXPECT_EQ(left->cut.size_after, 20u);
  EXPECT_EQ(left->cut.comment, "CREATE /a");
  EXPECT_EQ(left->before.mtime_ns, 1'000'000'000);
  EXPECT_EQ(left->before.ctime_ns, 2'000'000'000);
  ASSERT_EQ(left->cut.pages.size(), 2u);
  EXPECT_EQ(left->cut.pages[0].before, "aaaaaaaa");
  EXPECT_EQ(left->cut.pages[0].after, "bbbbbbbb");
  EXPECT_EQ(left->cut.pages[1].offset, 16u);
  EXPECT_EQ(left->cut.pages[1].after, "cccc");
}

TEST_F(FormatPageTest, DirtyMapOfAClient) {
  DirtyMap map;
  map.id = Counting(0x10);
  map.file_id = Counting();
  map.claim = DirtyMap::Claim::kResume;
  map.session_id = Counting(0x20);
  map.base_cut = 41;
  map.cut_newest = 42;
  map.stat.inode = 4711;
  map.stat.size_bytes = 8192;
  map.stat.mtime_ns = 1'000'000'000;
  map.stat.ctime_ns = 2'000'000'000;
  map.extents.Add({4096, 512});
  EXPECT_EQ(DirtyMapToBytes(map), Dumped("The client's dirty map"));
}

}  // namespace
}  // namespace h5mirror::store
