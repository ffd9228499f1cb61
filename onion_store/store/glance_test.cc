// Looks at many files: true at any moment, and cheap if nothing has changed.
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "onion_store/testing/counting_env.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

class GlanceTest : public testing::Test {
 protected:
  GlanceTest() : root_(std::filesystem::path(testing::TempDir()) / "glance_test") {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directory(root_);
    Reopen();
  }
  ~GlanceTest() override {
    store_.reset();
    std::filesystem::remove_all(root_);
  }
  void Reopen() {
    store_.reset();
    store_ = OpenStore(env_, root_);
  }
  void Write(const std::string& name, const std::string& bytes) {
    auto file = *store_->OpenOrCreateFile(name, 512);
    Writer writer(file, SessionStart::kContinue);
    ASSERT_TRUE(writer.begun().ok()) << writer.begun();
    ASSERT_TRUE(writer.Write(0, bytes).ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(writer.End().ok());
    ASSERT_TRUE(file->WaitApplied(absl::Seconds(20)).ok());
  }
  FileInfo Look(const std::string& name) {
    const auto listed = store_->List("", "", 1000);
    EXPECT_TRUE(listed.ok()) << listed.status();
    for (const FileSummary& file : *listed) {
      if (file.name != name) continue;
      const auto info = store_->Glance(file);
      EXPECT_TRUE(info.ok()) << info.status();
      return info.value_or(FileInfo());
    }
    ADD_FAILURE() << name << " is not listed";
    return {};
  }
  // Bytes of disk that a look takes.
  uint64_t CostOf(const std::string& name) {
    IoCounts::OfThisThread().Clear();
    Look(name);
    return IoCounts::OfThisThread().bytes;
  }
  // Waits until the store's threads no longer hold the file.
  void AwaitClosed(const std::string& name) {
    for (int i = 0; i < 400 && CostOf(name) > 0; ++i) absl::SleepFor(absl::Milliseconds(10));
    EXPECT_EQ(CostOf(name), 0u);
  }

  const std::filesystem::path root_;
  CountingEnv env_;
  std::unique_ptr<Store> store_;
};

TEST_F(GlanceTest, AClosedFileIsReadOnce) {
  Write("a.h5", "first");
  Reopen();
  EXPECT_GT(CostOf("a.h5"), 0u);
  AwaitClosed("a.h5");
  const FileInfo looked = Look("a.h5");
  const FileInfo info = *(*store_->OpenFile("a.h5"))->Info();
  EXPECT_EQ(looked.file_id, info.file_id);
  EXPECT_EQ(looked.last_cut, info.last_cut);
  EXPECT_EQ(looked.newest_version.version, 1);
  EXPECT_EQ(looked.newest_version.provenance.program, "test");
  EXPECT_EQ(looked.history_bytes, info.history_bytes);
}

TEST_F(GlanceTest, AWriterIsSeenAtOnceAndAfterItHasGone) {
  Write("a.h5", "first");
  Reopen();
  Look("a.h5");
  AwaitClosed("a.h5");
  {
    Writer writer(*store_->OpenFile("a.h5"), SessionStart::kContinue, "first");
    ASSERT_TRUE(writer.Write(0, "again").ok());
    const CutNumber cut = *writer.Cut(BarrierKind::kTick);
    EXPECT_EQ(Look("a.h5").last_cut, cut) << "of the open file";
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(writer.End().ok());
  }
  EXPECT_EQ(Look("a.h5").newest_version.version, 2);
  AwaitClosed("a.h5");
  EXPECT_EQ(Look("a.h5").newest_version.version, 2);
}

TEST_F(GlanceTest, ANameMayGetAnotherFile) {
  Write("a.h5", "first");
  Write("b.h5", "first");
  Write("b.h5", "second");
  Reopen();
  const FileId a = Look("a.h5").file_id, b = Look("b.h5").file_id;
  ASSERT_TRUE(store_->Move("a.h5", "c.h5").ok());
  ASSERT_TRUE(store_->Move("b.h5", "a.h5").ok());
  EXPECT_EQ(Look("a.h5").file_id, b);
  EXPECT_EQ(Look("c.h5").file_id, a);
  ASSERT_TRUE(store_->Remove("a.h5", {}, absl::Hours(1)).ok());
  EXPECT_TRUE(absl::IsNotFound(store_->Glance({"a.h5", 0, absl::InfinitePast()}).status()));
}

TEST_F(GlanceTest, AHeadThatWasChangedFromOutsideIsReadAgain) {
  Write("a.h5", "first");
  Reopen();
  EXPECT_EQ(Look("a.h5").newest_version.version, 1);
  AwaitClosed("a.h5");
  std::ofstream(root_ / "a.h5") << "by another program, and longer";
  EXPECT_EQ(Look("a.h5").last_cut, (*store_->OpenFile("a.h5"))->Info()->last_cut);
}

}  // namespace
}  // namespace h5mirror::store
