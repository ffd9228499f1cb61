// Sizes that no head can have: refused at the cut. If an older program accepted one, the file is
// rolled back from it.
#include <cstdlib>
#include <filesystem>

#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/store_health.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kPage = 512;
constexpr uint64_t kMax = uint64_t{1} << 26;
constexpr uint64_t kStuck = uint64_t{2} << 30;  // more than a FaultEnv's files have
constexpr FileSizeMax kKnown{.bytes = kMax};

class OversizeTest : public testing::Test {
 protected:
  absl::StatusOr<std::shared_ptr<File>> Open(const FileSizeMax& max) {
    file_.reset();
    notices();
    if (store_ != nullptr) store_->Close(absl::ZeroDuration()).IgnoreError();
    store_.reset();
    env_.SetFileSizes(max);
    StoreOptions options;
    options.page_size_bytes = kPage;
    store_ = OpenStore(env_, "/", options);
    auto file = store_->OpenOrCreateFile("x.h5", kPage);
    if (file.ok()) file_ = *file;
    return file;
  }
  // Makes a cut whose size is beyond the bytes that the writer has written.
  absl::StatusOr<CutNumber> Cut(Writer& writer, uint64_t size_bytes,
                                BarrierKind kind = BarrierKind::kCommit) {
    CutRequest request;
    request.kind = kind;
    request.size_bytes = size_bytes;
    request.barrier.seq = 7;
    absl::Notification done;
    absl::StatusOr<DurableCut> durable = absl::UnknownError("");
    const auto cut = file_->Cut(writer.token(), request, [&](absl::StatusOr<DurableCut> result) {
      durable = std::move(result);
      done.Notify();
    });
    if (!cut.ok()) return cut;
    done.WaitForNotification();
    EXPECT_TRUE(durable.ok()) << durable.status();
    return cut;
  }
  // Version 1, of four pages, and a durable cut of 2 GiB on top, as older programs made it.
  void GetStuck(BarrierKind kind) {
    ASSERT_TRUE(Open({}).ok());
    Writer writer(file_, SessionStart::kContinue);
    ASSERT_TRUE(writer.Write(0, std::string(4 * kPage, 'a')).ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    golden_ = writer.content();
    ASSERT_TRUE(file_->WaitApplied(absl::Seconds(30)).ok());
    ASSERT_TRUE(writer.Write(10, "superblock").ok());
    ASSERT_TRUE(Cut(writer, kStuck, kind).ok());
    EXPECT_TRUE(writer.End().ok());
    ASSERT_FALSE(file_->WaitApplied(absl::Milliseconds(300)).ok());
  }
  std::vector<VersionNumber> Versions() {
    std::vector<VersionNumber> numbers;
    const auto versions = *file_->ListVersions({}, 100);
    for (const VersionInfo& info : versions) numbers.push_back(info.version);
    return numbers;
  }
  std::vector<Damage> Verify() {
    std::vector<Damage> found;
    auto job = *file_->StartVerify({});
    for (bool done = false; !done;) {
      auto progress = *job->Step();
      for (Damage& damage : progress.found) found.push_back(std::move(damage));
      done = progress.done;
    }
    return found;
  }
  // All notices so far.
  const std::vector<std::string>& notices() {
    if (store_ == nullptr) return notices_;
    for (const StoreNotice& notice : StoreHealth::Of(*store_)->TakeNotices()) {
      notices_.push_back(notice.text);
    }
    return notices_;
  }

  FaultEnv env_;
  std::vector<std::string> notices_;
  std::string golden_;
  std::unique_ptr<Store> store_;
  std::shared_ptr<File> file_;
};

TEST_F(OversizeTest, SizesBeyondTheFileSystemsLimitAreRefusedAndTheLastCutStays) {
  ASSERT_TRUE(Open(kKnown).ok());
  Writer first(file_, SessionStart::kContinue);
  ASSERT_TRUE(first.Write(0, std::string(4 * kPage, 'a')).ok());
  ASSERT_TRUE(first.CutDurably(BarrierKind::kCommit).ok());
  const std::string content = first.content();
  const auto cut = Cut(first, kMax + 1);
  EXPECT_TRUE(absl::IsInvalidArgument(cut.status())) << cut.status();
  EXPECT_THAT(std::string(cut.status().message()), HasSubstr("67108864 bytes"));
  EXPECT_TRUE(absl::IsInvalidArgument(first.CutDurably(BarrierKind::kCommit).status()))
      << "a session that lost a cut makes no other";
  ASSERT_TRUE(first.End().ok());
  Writer second(file_, SessionStart::kContinue, content);
  EXPECT_TRUE(absl::IsInvalidArgument(file_->Truncate(second.token(), INT64_MAX)));
  ASSERT_TRUE(second.End().ok());
  Writer third(file_, SessionStart::kContinue, content);
  const Extent far{kMax, 1};
  const std::string_view byte = "x";
  EXPECT_TRUE(absl::IsInvalidArgument(file_->Write(third.token(), {&far, 1}, {&byte, 1})));
  ASSERT_TRUE(third.End().ok());
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(30)).ok());
  EXPECT_THAT(Versions(), testing::ElementsAre(1));
  EXPECT_TRUE(ReadVersion(*file_, 1) == content);
  // The largest size that fits is accepted.
  Writer fourth(file_, SessionStart::kContinue, content);
  ASSERT_TRUE(Cut(fourth, kMax).ok());
  ASSERT_TRUE(fourth.End().ok());
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
}

TEST_F(OversizeTest, TheProcessesOwnLimitIsNamed) {
  ASSERT_TRUE(Open({.process_bytes = 1 << 20}).ok());
  Writer writer(file_, SessionStart::kContinue);
  const absl::Status written = writer.Write(1 << 20, "x");
  EXPECT_TRUE(absl::IsInvalidArgument(written)) << written;
  EXPECT_THAT(std::string(written.message()), HasSubstr("ulimit"));
}

TEST_F(OversizeTest, AFileThatGotStuckGoesOnAtItsLastVersionThatFits) {
  for (const BarrierKind kind : {BarrierKind::kCommit, BarrierKind::kSync}) {
    SCOPED_TRACE(static_cast<int>(kind));
    env_.SetFileSizes({});
    GetStuck(kind);
    ASSERT_EQ(notices().size(), 1u) << "said once, however often it is tried";
    EXPECT_THAT(notices()[0], HasSubstr("File too large"));
    // While the limit is unknown, a restart does not help either.
    ASSERT_TRUE(Open({}).ok());
    EXPECT_FALSE(file_->WaitApplied(absl::Milliseconds(300)).ok());

    const bool is_version = kind == BarrierKind::kCommit;
    const VersionNumber gone = is_version ? 2 : 0, made = is_version ? 3 : 2;
    for (int start = 0; start < 3; ++start) {
      ASSERT_TRUE(Open(kKnown).ok());
      ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
      EXPECT_THAT(Versions(), testing::ElementsAre(made, 1));
      EXPECT_THAT(file_->GetVersion(0)->provenance.comment, HasSubstr("went back to version 1 "));
      if (gone != 0) {
        EXPECT_TRUE(absl::IsOutOfRange(file_->GetVersion(gone).status()));
      }
      EXPECT_TRUE(ReadVersion(*file_, 1) == golden_);
      EXPECT_TRUE(ReadVersion(*file_, made) == golden_);
      EXPECT_EQ((*env_.OpenTree("/"))->Stat("x.h5")->size_bytes,
                static_cast<int64_t>(golden_.size()));
      EXPECT_THAT(Verify(), IsEmpty());
    }
    size_t said = 0;
    for (const std::string& notice : notices()) said += notice.find("goes on as") != notice.npos;
    EXPECT_EQ(said, 1u);
    Writer writer(file_, SessionStart::kContinue, golden_);
    ASSERT_TRUE(writer.Write(kPage, "next").ok());
    const auto next = writer.CutDurably(BarrierKind::kCommit);
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_EQ(next->version, made + 1);
    ASSERT_TRUE(writer.End().ok());
    EXPECT_TRUE(ReadVersion(*file_, made + 1) == writer.content());
    file_.reset();
    ASSERT_TRUE(store_->Remove("x.h5", Provenance(), absl::Hours(1)).ok());
    notices_.clear();
  }
}

TEST_F(OversizeTest, ACrashWhileItGoesBackFindsTheSameAgain) {
  GetStuck(BarrierKind::kCommit);
  file_.reset();
  auto stuck = env_.CopyNow();
  stuck->SetFileSizes(kKnown);
  for (uint64_t call = 0;; ++call) {
    auto env = stuck->CopyNow();
    env->SetFileSizes(kKnown);
    {
      auto store = OpenStore(*env, "/");
      env->FailCall(call, absl::InternalError("EIO"));
      store->OpenFile("x.h5").status().IgnoreError();
      store->Close(absl::ZeroDuration()).IgnoreError();
    }
    const bool done = !env->fault_met();
    auto crashed = env->Crash(env->change_count(), call);
    crashed->SetFileSizes(kKnown);
    auto store = OpenStore(*crashed, "/");
    auto file = store->OpenFile("x.h5");
    ASSERT_TRUE(file.ok()) << call << " " << file.status();
    ASSERT_TRUE((*file)->WaitApplied(absl::Seconds(60)).ok()) << call;
    const VersionInfo newest = *(*file)->GetVersion(0);
    EXPECT_GE(newest.version, 3) << call;
    EXPECT_TRUE(ReadVersion(**file, newest.version) == golden_) << call;
    EXPECT_TRUE(absl::IsOutOfRange((*file)->GetVersion(2).status())) << call;
    if (done) break;
  }
}

TEST_F(OversizeTest, AFileWithoutAnyVersionThatFitsCanBeRemoved) {
  ASSERT_TRUE(Open({}).ok());
  {
    Writer writer(file_, SessionStart::kContinue);
    ASSERT_TRUE(writer.Write(0, "superblock").ok());
    ASSERT_TRUE(Cut(writer, kStuck).ok());
    EXPECT_TRUE(writer.End().ok());
  }
  EXPECT_FALSE(file_->WaitApplied(absl::Milliseconds(300)).ok());
  const auto opened = Open(kKnown);
  ASSERT_TRUE(absl::IsDataLoss(opened.status())) << opened.status();
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("h5mirror rm"));
  const auto removed = store_->Remove("x.h5", Provenance(), absl::Hours(1));
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_TRUE(Open(kKnown).ok());
}

TEST_F(OversizeTest, ANewGenerationThatGotStuckGivesWayToTheOneBefore) {
  ASSERT_TRUE(Open({}).ok());
  Writer first(file_, SessionStart::kContinue);
  ASSERT_TRUE(first.Write(0, std::string(4 * kPage, 'a')).ok());
  ASSERT_TRUE(first.CutDurably(BarrierKind::kCommit).ok());
  ASSERT_TRUE(first.End().ok());
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(30)).ok());
  {
    Writer again(file_, SessionStart::kNewGeneration);
    ASSERT_TRUE(again.Write(0, "superblock").ok());
    ASSERT_TRUE(Cut(again, kStuck).ok());
    EXPECT_TRUE(again.End().ok());
  }
  EXPECT_FALSE(file_->WaitApplied(absl::Milliseconds(300)).ok());
  const auto opened = Open(kKnown);
  ASSERT_TRUE(opened.ok()) << opened.status();
  ASSERT_TRUE(file_->WaitApplied(absl::Seconds(60)).ok());
  EXPECT_THAT(Versions(), testing::ElementsAre(3, 1));
  EXPECT_TRUE(ReadVersion(*file_, 3) == first.content());
  EXPECT_THAT(Verify(), IsEmpty());
}

// The machine's own file system: the reported largest size works, and one byte more does not.
TEST(FileSizesTest, TheLimitIsTheFileSystemsInFact) {
  std::string root = testing::TempDir() + "/sizes-XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  auto tree = *Env::Posix().OpenTree(root);
  const FileSizeMax max = dynamic_cast<KnowsFileSizes&>(*tree).FileSizes();
  auto file = *tree->Open("x", OpenKind::kCreateFresh, 0600);
  if (max.process_bytes == INT64_MAX) {
    EXPECT_TRUE(file->Truncate(max.bytes).ok() || max.bytes == INT64_MAX) << max.bytes;
    if (max.bytes < INT64_MAX) {
      EXPECT_FALSE(file->Truncate(max.bytes + 1).ok()) << max.bytes;
    }
  }
  EXPECT_GE(max.bytes, uint64_t{1} << 31);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace h5mirror::store
