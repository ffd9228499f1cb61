// Pages that are saved compressed: by themselves, in segments, and in the life of a file.
#include <map>
#include <random>
#include <set>

#include "base/crc32c.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/pages/page_packing.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;

constexpr uint32_t kPage = 512;

std::string Noise(size_t size, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST(PackPagesTest, WhatIsPackedComesBackAndNoiseIsLeftAlone) {
  std::string packed;
  const std::string bytes(size_t{64} << 10, 'a');
  ASSERT_TRUE(PackPages(bytes, &packed));
  EXPECT_LT(packed.size(), 100u);
  std::string out(bytes.size(), '\0');
  ASSERT_TRUE(UnpackPages(packed, absl::MakeSpan(out)).ok());
  EXPECT_EQ(out, bytes);
  EXPECT_FALSE(PackPages(Noise(64 << 10), &packed));
  EXPECT_FALSE(PackPages(Noise(960) + std::string(64, 'a'), &packed)) << "not an eighth";
}

TEST(PackPagesTest, AnotherLengthOrNoFrameIsDataLoss) {
  std::string packed;
  ASSERT_TRUE(PackPages(std::string(4096, 'a'), &packed));
  for (size_t size : {4095, 4097, 1}) {
    std::string out(size, '\0');
    EXPECT_TRUE(absl::IsDataLoss(UnpackPages(packed, absl::MakeSpan(out)))) << size;
  }
  std::string out(4096, '\0');
  for (const std::string& bad : {std::string(), packed.substr(1), Noise(30), packed + "x"}) {
    EXPECT_TRUE(absl::IsDataLoss(UnpackPages(bad, absl::MakeSpan(out))));
  }
}

class PackedSegmentsTest : public testing::Test {
 protected:
  PackedSegmentsTest() : tree_(*env_.OpenTree("/")), pages_(*tree_, "d", FileId{1}, kPage, 1, 0) {
    EXPECT_TRUE(tree_->MakeDirectory("d", 0700).ok());
  }
  // A packed record of four pages, whose bytes are 'a' to 'd'.
  PageRun Append() {
    std::string bytes, packed;
    std::vector<uint32_t> crcs;
    for (char fill : {'a', 'b', 'c', 'd'}) {
      bytes.append(kPage, fill);
      crcs.push_back(Crc32c(std::string(kPage, fill)));
    }
    EXPECT_TRUE(PackPages(bytes, &packed));
    auto run = pages_.AppendPacked(1, 2, 8, 5, packed, crcs);
    EXPECT_TRUE(run.ok() && pages_.Sync().ok()) << run.status();
    return *run;
  }
  absl::Status Read(const PageRun& run, uint64_t first, std::string* out) {
    return pages_.Read(run, 1, first, absl::MakeSpan(*out));
  }

  FaultEnv env_;
  std::unique_ptr<EnvTree> tree_;
  PageSegments pages_;
};

TEST_F(PackedSegmentsTest, AnyPagesOfARunAreReadAndItTakesWhatItSays) {
  const PageRun run = Append();
  EXPECT_TRUE(run.packed());
  EXPECT_EQ(pages_.end_bytes(), pages_.RecordBytes(run));
  std::string all(4 * kPage, '\0'), middle(2 * kPage, '\0');
  ASSERT_TRUE(Read(run, 8, &all).ok());
  EXPECT_EQ(all.substr(3 * kPage), std::string(kPage, 'd'));
  ASSERT_TRUE(Read(run, 9, &middle).ok());
  EXPECT_EQ(middle, std::string(kPage, 'b') + std::string(kPage, 'c'));
}

TEST_F(PackedSegmentsTest, ACopyIsTheSameRecord) {
  const PageRun run = Append();
  auto copy = pages_.Copy(run, 1);
  ASSERT_TRUE(copy.ok() && pages_.Sync().ok()) << copy.status();
  EXPECT_EQ(copy->packed_bytes, run.packed_bytes);
  EXPECT_EQ(copy->offset, pages_.RecordBytes(run));
  std::string all(4 * kPage, '\0');
  ASSERT_TRUE(Read(*copy, 8, &all).ok());
  EXPECT_TRUE(pages_.Check(*copy, 1).ok());
}

TEST_F(PackedSegmentsTest, EachFlippedBitIsDataLossAndNeverServed) {
  const PageRun run = Append();
  auto file = *tree_->Open("d/pages-000001", OpenKind::kWrite, 0);
  for (uint64_t at = 0; at < pages_.end_bytes(); ++at) {
    std::string byte(1, '\0'), all(4 * kPage, '\0');
    ASSERT_TRUE(file->ReadAt(at, absl::MakeSpan(byte)).ok());
    const std::string flipped(1, static_cast<char>(byte[0] ^ 4));
    ASSERT_TRUE(WriteAt(*file, at, flipped).ok());
    const absl::Status read = Read(run, 8, &all);
    // A bit of the frame that says nothing may pass, with the right pages.
    EXPECT_TRUE(absl::IsDataLoss(read) || (read.ok() && all[0] == 'a' && all.back() == 'd'))
        << at << ": " << read;
    EXPECT_EQ(pages_.Check(run, 1).code(), read.code());
    ASSERT_TRUE(WriteAt(*file, at, byte).ok());
  }
}

TEST_F(PackedSegmentsTest, AnIndexThatSaysOtherwiseIsDataLoss) {
  const PageRun run = Append();
  std::string all(4 * kPage, '\0');
  for (uint32_t bytes : {0u, run.packed_bytes - 1, run.packed_bytes + 1, 4 * kPage, UINT32_MAX}) {
    PageRun other = run;
    other.packed_bytes = bytes;
    EXPECT_TRUE(absl::IsDataLoss(Read(other, 8, &all))) << bytes;
    EXPECT_TRUE(absl::IsDataLoss(pages_.Check(other, 1))) << bytes;
  }
}

// A file, most of whose pages shrink.
class PackedFileTest : public testing::Test {
 protected:
  PackedFileTest() { Open(PageCompression::kZstd); }

  void Open(PageCompression compression) {
    file_.reset();
    store_.reset();
    StoreOptions options;
    options.page_size_bytes = kPage;
    options.page_compression = compression;
    store_ = OpenStore(env_, "/", options);
    file_ = *store_->OpenOrCreateFile("x.h5", kPage);
  }
  // Makes a version that overwrites `pages` random pages of 300, every fifth of them with noise.
  void Write(int pages) {
    Writer writer(file_, SessionStart::kContinue, golden_.empty() ? "" : golden_.rbegin()->second);
    for (int i = 0; i < pages; ++i) {
      const uint64_t page = golden_.empty() ? i : random_() % 300;
      const char fill = static_cast<char>(random_());
      Must(writer.Write(page * kPage,
                        i % 5 == 4 ? Noise(kPage, random_()) : std::string(kPage, fill)));
    }
    auto cut = writer.CutDurably(BarrierKind::kCommit);
    Must(cut.status());
    golden_[cut->version] = writer.content();
    Must(writer.End());
    Must(file_->WaitApplied(absl::Seconds(30)));
  }
  void CheckAll() {
    for (const auto& [version, bytes] : golden_) {
      EXPECT_TRUE(ReadVersion(*file_, version) == bytes) << "version " << version;
    }
  }
  std::set<PagePlace> Places(VersionNumber version) {
    std::set<PagePlace> places;
    auto reader = *file_->OpenVersion(version);
    for (uint64_t page = 0; page < 300;) {
      const std::vector<PlacedRun> runs = *reader->Locate(page, PageSums::kLeaveOut);
      for (const PlacedRun& run : runs) {
        places.insert(run.place);
        page = run.page_end();
      }
    }
    return places;
  }
  uint64_t PagesBytes() { return (*env_.OpenTree("/"))->Stat("x.h5.h5m/pages-000001")->size_bytes; }
  static void Must(const absl::Status& status) { ASSERT_TRUE(status.ok()) << status; }

  FaultEnv env_;
  std::mt19937_64 random_{5};
  std::map<VersionNumber, std::string> golden_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
};

TEST_F(PackedFileTest, VersionsReadAsTheyWereAndTakeLess) {
  Write(300);
  for (int i = 0; i < 8; ++i) Write(60);
  CheckAll();
  EXPECT_LT(PagesBytes(), 8 * 60 * kPage / 2);
  EXPECT_THAT(Places(1), testing::IsSupersetOf({PagePlace::kPacked, PagePlace::kPages}));
  Open(PageCompression::kNone);
  for (int i = 0; i < 3; ++i) Write(60);
  CheckAll();
}

TEST_F(PackedFileTest, TheMapNamesEachRecordOnce) {
  Write(300);
  Write(300);
  auto reader = *file_->OpenVersion(1);
  std::vector<PlacedRun> map;
  for (uint64_t page = 0; page < 300;) {
    const std::vector<PlacedRun> runs = *reader->Locate(page, PageSums::kLeaveOut);
    for (const PlacedRun& run : runs) {
      page = run.page_end();
      if (map.empty() || !map.back().TakeIn(run, kPage)) map.push_back(run);
    }
  }
  std::set<uint64_t> offsets;
  for (const PlacedRun& run : map) {
    if (run.place != PagePlace::kPacked) continue;
    EXPECT_EQ(run.file, "x.h5.h5m/pages-000001");
    EXPECT_TRUE(offsets.insert(run.offset).second) << run.page;
    EXPECT_LE(run.page_count, kPackedPagesBytes / kPage);
  }
  EXPECT_FALSE(offsets.empty());
}

TEST_F(PackedFileTest, ARollbackBringsPackedPagesBackBeforeAndAfterItIsApplied) {
  Write(300);
  for (int i = 0; i < 4; ++i) Write(60);
  for (VersionNumber to : {1, 3}) {
    auto made = file_->Rollback(to, {}, {static_cast<uint8_t>(to)});
    ASSERT_TRUE(made.ok()) << made.status();
    golden_[made->version] = golden_[to];
    CheckAll();
    Must(file_->WaitApplied(absl::Seconds(30)));
    CheckAll();
  }
  Open(PageCompression::kZstd);
  CheckAll();
}

TEST_F(PackedFileTest, APruneMovesRecordsAsTheyAre) {
  Write(300);
  for (int i = 0; i < 30; ++i) Write(40);
  std::vector<VersionNumber> doomed;
  for (VersionNumber version = 1; version < 31; ++version) {
    if (version % 10 == 0) continue;
    doomed.push_back(version);
    golden_.erase(version);
  }
  auto job = *file_->StartPrune(doomed);
  for (bool done = false; !done;) {
    auto progress = job->Step();
    ASSERT_TRUE(progress.ok()) << progress.status();
    done = progress->done;
  }
  job.reset();
  CheckAll();
  EXPECT_THAT(Places(10), testing::Contains(PagePlace::kPacked));
  auto verify = *file_->StartVerify({});
  for (bool done = false; !done;) {
    auto progress = verify->Step();
    ASSERT_TRUE(progress.ok()) << progress.status();
    EXPECT_TRUE(progress->found.empty());
    done = progress->done;
  }
  Open(PageCompression::kZstd);
  CheckAll();
}

}  // namespace
}  // namespace h5mirror::store
