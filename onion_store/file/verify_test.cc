// Single bits flip in each file of a history: verify finds them, and nobody is served them.
#include <random>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/store_health.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kPage = 512;
constexpr char kHistory[] = "x.h5.h5m/";

class VerifyTest : public testing::Test {
 protected:
  VerifyTest() { Open(env_); }

  void Open(FaultEnv& env) {
    file_.reset();
    store_.reset();
    StoreOptions options;
    options.page_size_bytes = kPage;
    store_ = OpenStore(env, "/", options);
    file_ = *store_->OpenOrCreateFile("x.h5", kPage);
  }
  void Write(int versions) {
    Writer writer(file_, SessionStart::kNewGeneration);
    for (int i = 0; i < versions; ++i) {
      for (int n = 0; n < 20; ++n) {
        ASSERT_TRUE(writer.Write(random_() % 64 * kPage, Bytes(kPage)).ok());
      }
      auto cut = writer.CutDurably(BarrierKind::kCommit);
      ASSERT_TRUE(cut.ok()) << cut.status();
      golden_[cut->version] = writer.content();
    }
    ASSERT_TRUE(writer.End().ok());
    ASSERT_TRUE(file_->WaitApplied(absl::Seconds(30)).ok());
  }
  std::vector<Damage> Verify(VerifySubset subset = {}) {
    std::vector<Damage> found;
    auto job = file_->StartVerify(subset);
    EXPECT_TRUE(job.ok()) << job.status();
    while (true) {
      auto progress = (*job)->Step();
      EXPECT_TRUE(progress.ok()) << progress.status();
      if (!progress.ok()) return found;
      for (Damage& damage : progress->found) found.push_back(std::move(damage));
      if (progress->done) return found;
    }
  }
  // A version of which all is durable and nothing in the head: the disk is full from then on.
  void WriteUnapplied() {
    Writer writer(file_, SessionStart::kContinue, golden_.rbegin()->second);
    for (uint64_t page : {3, 4, 9, 30}) {
      ASSERT_TRUE(writer.Write(page * kPage + 7, Bytes(kPage)).ok());
    }
    absl::Notification durable;
    ASSERT_TRUE(writer
                    .Cut(BarrierKind::kCommit,
                         [&](absl::StatusOr<DurableCut> cut) {
                           env_.SetCapacity(1);  // It is told before the cut is applied.
                           if (cut.ok()) golden_[cut->version] = writer.content();
                           durable.Notify();
                         })
                    .ok());
    durable.WaitForNotification();
    ASSERT_TRUE(writer.End().ok());
    // Until the apply has met it.
    EXPECT_FALSE(file_->WaitApplied(absl::Milliseconds(200)).ok());
  }
  std::string StageName() {
    const std::vector<DirectoryEntry> entries = *(*env_.OpenTree("/"))->List("x.h5.h5m");
    for (const DirectoryEntry& entry : entries) {
      const std::string name = kHistory + entry.name;
      if (entry.name.starts_with("stage-") && SizeOf(name) > 0) return name;
    }
    return "";
  }
  void Flip(const std::string& name, uint64_t offset) {
    auto tree = *env_.OpenTree("/");
    auto file = *tree->Open(name, OpenKind::kWrite, 0);
    std::string byte(1, '\0');
    ASSERT_TRUE(file->ReadAt(offset, absl::MakeSpan(byte)).ok());
    byte[0] ^= 4;
    ASSERT_TRUE(WriteAt(*file, offset, byte).ok());
  }
  uint64_t SizeOf(const std::string& name) { return (*env_.OpenTree("/"))->Stat(name)->size_bytes; }
  // Which versions read as they were; the others must say that they do not.
  std::vector<VersionNumber> Whole() {
    std::vector<VersionNumber> whole;
    for (const auto& [version, golden] : golden_) {
      std::string bytes(golden.size(), '\0');
      const absl::Status read = (*file_->OpenVersion(version))->Read(0, absl::MakeSpan(bytes));
      if (read.ok()) {
        EXPECT_TRUE(bytes == golden) << version;
        whole.push_back(version);
      } else {
        EXPECT_TRUE(absl::IsDataLoss(read)) << read;
      }
    }
    return whole;
  }
  std::string Bytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  FaultEnv env_;
  std::mt19937_64 random_{5};
  std::map<VersionNumber, std::string> golden_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
};

TEST_F(VerifyTest, AWholeHistoryHasNoDamage) {
  Write(6);
  EXPECT_THAT(Verify(), IsEmpty());
  Open(env_);
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(VerifyTest, ABitOfTheHeadIsFoundWithTheVersionsThatReadIt) {
  Write(6);
  Flip("x.h5", 10 * kPage + 3);
  const std::vector<Damage> found = Verify();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].place, DamagePlace::kHead);
  EXPECT_EQ(found[0].file, "x.h5");
  EXPECT_EQ(found[0].offset, 10 * kPage);
  EXPECT_EQ(found[0].newest, 6);
  EXPECT_EQ(Whole().size(), static_cast<size_t>(found[0].oldest - 1));
}

TEST_F(VerifyTest, ABitOfTheSumsIsFound) {
  Write(6);
  Flip(std::string(kHistory) + "sums-1", 4 * 7);
  const std::vector<Damage> found = Verify();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].place, DamagePlace::kHead);
  EXPECT_EQ(found[0].offset, 7 * kPage);
  EXPECT_THAT(found[0].message, HasSubstr("sums-1"));
}

TEST_F(VerifyTest, BitsOfASegmentAreFoundWhereverTheyAre) {
  Write(6);
  const std::string name = std::string(kHistory) + "pages-000001";
  for (int i = 0; i < 20; ++i) {
    const uint64_t at = random_() % SizeOf(name);
    Flip(name, at);
    const std::vector<Damage> found = Verify();
    ASSERT_EQ(found.size(), 1u) << at;
    EXPECT_EQ(found[0].place, DamagePlace::kPages);
    EXPECT_EQ(found[0].file, name);
    EXPECT_LE(found[0].offset, at);
    EXPECT_LT(Whole().size(), golden_.size());
    Flip(name, at);
  }
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(VerifyTest, BitsOfAnOlderGenerationAreFound) {
  Write(3);
  Write(3);
  for (const char* name : {"head-1", "sums-1"}) {
    Flip(std::string(kHistory) + name, 4 * 7);
    const std::vector<Damage> found = Verify();
    ASSERT_EQ(found.size(), 1u) << name;
    EXPECT_EQ(found[0].place, DamagePlace::kHead);
    EXPECT_EQ(found[0].file, std::string(kHistory) + "head-1");
    EXPECT_LE(found[0].newest, 3);
    EXPECT_GE(Whole().size(), 3u);
    EXPECT_LT(Whole().size(), golden_.size());
    Flip(std::string(kHistory) + name, 4 * 7);
  }
}

TEST_F(VerifyTest, BitsOfWhatIsDurableAndNotInTheHeadAreFound) {
  Write(3);
  WriteUnapplied();
  EXPECT_THAT(Verify(), IsEmpty());
  const std::string name = StageName();
  ASSERT_NE(name, "");
  for (int i = 0; i < 40; ++i) {
    const uint64_t bit = random_() % (SizeOf(name) * 8);
    ASSERT_TRUE(env_.FlipBit(name, bit).ok());
    const std::vector<Damage> found = Verify();
    ASSERT_EQ(found.size(), 1u) << bit;
    EXPECT_EQ(found[0].place, DamagePlace::kStage);
    EXPECT_EQ(found[0].file, name);
    EXPECT_EQ(found[0].newest, 4);
    EXPECT_THAT(found[0].message, HasSubstr("record at"));
    ASSERT_TRUE(env_.FlipBit(name, bit).ok());
  }
  EXPECT_THAT(Verify(), IsEmpty());
  EXPECT_EQ(Whole().size(), golden_.size());
}

TEST_F(VerifyTest, AFileWhoseDurableStageIsDamagedIsNotOpened) {
  Write(3);
  WriteUnapplied();
  const std::string name = StageName();
  for (int i = 0; i < 20; ++i) {
    auto env = env_.CopyNow();
    ASSERT_TRUE(env->FlipBit(name, random_() % (SizeOf(name) * 8)).ok());
    auto store = OpenStore(*env, "/");
    auto opened = store->OpenFile("x.h5");
    EXPECT_TRUE(absl::IsDataLoss(opened.status())) << opened.status();
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(name));
  }
}

// What versions lose is known from the moment on at which it is noted, and stays damage.
TEST_F(VerifyTest, PagesThatWereLostAreFoundUntilTheirVersionsArePruned) {
  Write(3);
  Flip("x.h5", 10 * kPage + 3);
  Flip("x.h5", 11 * kPage + 3);
  Writer writer(file_, SessionStart::kContinue, golden_[3]);
  ASSERT_TRUE(writer.Write(10 * kPage, Bytes(2 * kPage)).ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(writer.End().ok());
  golden_[4] = writer.content();
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(30)).ok());
  for (int time = 0; time < 3; ++time) {
    const std::vector<Damage> found = Verify();
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found[0].place, DamagePlace::kPages);
    EXPECT_EQ(found[0].offset, 10 * kPage);
    EXPECT_EQ(found.back().newest, 3);
    VersionNumber oldest = found[0].oldest;
    for (const Damage& damage : found) oldest = std::min(oldest, damage.oldest);
    EXPECT_EQ(Whole().size(), static_cast<size_t>(oldest));
    Open(env_);
  }
  ASSERT_TRUE(Whole().size() < 4 && Whole().back() == 4);
  auto job = *file_->StartPrune({1, 2, 3});
  for (bool done = false; !done;) done = job->Step()->done;
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(VerifyTest, WhoLosesPagesIsToldOfOnceAndCounted) {
  Write(3);
  Flip("x.h5", 10 * kPage + 3);
  Writer writer(file_, SessionStart::kContinue, golden_[3]);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(writer.Write(10 * kPage, Bytes(kPage)).ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(file_->WaitApplied(absl::Seconds(30)).ok());
  }
  ASSERT_TRUE(writer.End().ok());
  const std::vector<StoreNotice> notices = StoreHealth::Of(*store_)->TakeNotices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].file, "x.h5");
  EXPECT_THAT(notices[0].text, HasSubstr("page 10 of version 3 lost"));
  EXPECT_EQ(StoreHealth::Of(*store_)->lost_pages(), 1u);
}

// Bit rot changes no times, and is found by the checksums alone.
TEST_F(VerifyTest, BitRotThatIsOverwrittenInPartIsNotPassedOffAsTheWritersBytes) {
  Write(2);
  ASSERT_TRUE(env_.FlipBit("x.h5", (10 * kPage + 3) * 8).ok());
  ASSERT_TRUE(env_.FlipBit("x.h5", (20 * kPage + 3) * 8).ok());
  Writer writer(file_, SessionStart::kContinue, golden_[2]);
  ASSERT_TRUE(writer.Write(10 * kPage + 100, Bytes(20)).ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  golden_[3] = writer.content();
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(30)).ok());
  std::vector<VersionNumber> whole = Whole();
  EXPECT_TRUE(std::find(whole.begin(), whole.end(), 3) == whole.end());
  std::string bytes(kPage, '\0');
  EXPECT_TRUE(absl::IsDataLoss((*file_->OpenVersion(3))->Read(10 * kPage, absl::MakeSpan(bytes))));
  EXPECT_TRUE((*file_->OpenVersion(3))->Read(11 * kPage, absl::MakeSpan(bytes)).ok());
  // Written as a whole it is right again.
  ASSERT_TRUE(writer.Write(10 * kPage, Bytes(kPage)).ok());
  ASSERT_TRUE(writer.Write(20 * kPage, Bytes(kPage)).ok());
  ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
  golden_[4] = writer.content();
  ASSERT_TRUE(writer.End().ok());
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(30)).ok());
  EXPECT_TRUE(ReadVersion(*file_, 4) == golden_[4]);
  Open(env_);
  EXPECT_TRUE(ReadVersion(*file_, 4) == golden_[4]);
  for (const Damage& damage : Verify()) EXPECT_EQ(damage.place, DamagePlace::kPages);
}

TEST_F(VerifyTest, AChangeFromOutsideCostsOlderVersionsPages) {
  Write(2);
  file_.reset();
  store_.reset();
  Flip("x.h5", 10 * kPage + 3);
  Open(env_);
  golden_.erase(2);
  EXPECT_EQ(file_->Info()->newest_version.version, 3);
  const std::vector<Damage> found = Verify();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].place, DamagePlace::kPages);
  EXPECT_EQ(found[0].newest, 2);
  const std::vector<StoreNotice> notices = StoreHealth::Of(*store_)->TakeNotices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_EQ(notices[0].file, "x.h5");
  EXPECT_THAT(notices[0].text, HasSubstr("version 3 now; lost pages of version 2 or older: 1"));
}

TEST_F(VerifyTest, ThePartsTogetherFindWhatTheWholeDoes) {
  Write(6);
  Flip("x.h5", 10 * kPage + 3);
  size_t found = 0;
  for (int part = 1; part <= 5; ++part) found += Verify({part, 5}).size();
  EXPECT_EQ(found, 1u);
  EXPECT_TRUE(absl::IsInvalidArgument(file_->StartVerify({6, 5}).status()));
}

TEST_F(VerifyTest, AfterAPruneThereIsNoDamage) {
  Write(20);
  auto job = *file_->StartPrune({1, 2, 3, 5, 8, 9, 10, 11, 12, 14});
  for (bool done = false; !done;) done = job->Step()->done;
  EXPECT_THAT(Verify(), IsEmpty());
}

TEST_F(VerifyTest, ADamagedIndexIsFoundOrRefused) {
  Write(12);
  file_.reset();
  store_.reset();
  const std::string name = std::string(kHistory) + "index";
  int refused = 0, found = 0;
  // Each page of the database but the second, which maps the others: its first byte says what it
  // is.
  for (uint64_t at = 2 * 4096; at < SizeOf(name); at += 4096) {
    Flip(name, at);
    auto env = env_.CopyNow();
    Flip(name, at);
    StoreOptions options;
    options.page_size_bytes = kPage;
    auto store = OpenStore(*env, "/", options);
    auto opened = store->OpenFile("x.h5");
    if (!opened.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(opened.status())) << at << " " << opened.status();
      ++refused;
      continue;
    }
    file_ = *std::move(opened);
    const std::vector<Damage> damage = Verify();
    if (damage.empty()) {  // The log held the page, and has mended it.
      EXPECT_EQ(Whole().size(), golden_.size()) << at;
    } else {
      EXPECT_EQ(damage[0].place, DamagePlace::kIndex);
      ++found;
    }
    file_.reset();
  }
  EXPECT_GT(refused + found, 0);
}

}  // namespace
}  // namespace h5mirror::store
