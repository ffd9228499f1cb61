// More open files than indexes may be open.
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "base/testing/fault_env.h"
#include "gmock/gmock.h"
#include "onion_store/shared/open_indexes.h"
#include "onion_store/testing/test_store.h"

namespace h5mirror::store {
namespace {

class ManyFilesTest : public testing::Test {
 protected:
  static constexpr uint64_t kMemory = 8 << 20;
  static constexpr int kFiles = 30;

  ManyFilesTest() {
    options_.memory_max_bytes = kMemory;
    store_ = OpenStore(env_, "/", options_);
  }
  static std::string NameOf(int i) { return "d/x" + std::to_string(i) + ".h5"; }

  FaultEnv env_;
  StoreOptions options_;
  std::unique_ptr<Store> store_;
};

TEST_F(ManyFilesTest, AllAreWrittenAndReadAndFewIndexesAreOpen) {
  ASSERT_GT(kFiles, 2 * OpenIndexes::MaxFor(kMemory));
  std::vector<std::unique_ptr<Writer>> writers;
  std::vector<std::unique_ptr<VersionReader>> readers;
  std::vector<std::string> first;
  for (int i = 0; i < kFiles; ++i) {
    writers.push_back(std::make_unique<Writer>(*store_->OpenOrCreateFile(NameOf(i), 512),
                                               SessionStart::kContinue));
    ASSERT_TRUE(writers[i]->Write(0, std::string(5000 + i, static_cast<char>('a' + i))).ok());
    ASSERT_TRUE(writers[i]->CutDurably(BarrierKind::kCommit).ok());
    first.push_back(writers[i]->content());
    readers.push_back(*writers[i]->file().OpenVersion(1));
  }
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < kFiles; ++i) {
      ASSERT_TRUE(writers[i]->Write(700 * round, std::string(600, static_cast<char>(i))).ok());
      ASSERT_TRUE(writers[i]->CutDurably(BarrierKind::kCommit).ok());
    }
  }
  for (int i = 0; i < kFiles; ++i) {
    EXPECT_TRUE(writers[i]->file().WaitApplied(absl::Seconds(60)).ok());
    EXPECT_EQ(ReadAll(*readers[i]), first[i]);
    EXPECT_EQ(ReadVersion(writers[i]->file(), 4), writers[i]->content());
    EXPECT_EQ(writers[i]->file().Info()->version_count, 4);
    EXPECT_TRUE(writers[i]->End().ok());
  }
  // Once the last apply has released its memory, only the memory of open indexes is left.
  const uint64_t allowed = OpenIndexes::MaxFor(kMemory) * OpenIndexes::kIndexBytes;
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  while (store_->memory_used_bytes() > allowed && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_LE(store_->memory_used_bytes(), allowed);
  EXPECT_GT(store_->memory_used_bytes(), 0u);
}

// A reader of a file that died or was moved must not touch the index of the next file of that name.
TEST_F(ManyFilesTest, AReaderOfAMovedFileDoesNotOpenTheIndexThatHasItsNameNow) {
  const auto make = [this](const std::string& name, char byte) {
    Writer writer(*store_->OpenOrCreateFile(name, 512), SessionStart::kContinue);
    ASSERT_TRUE(writer.Write(0, std::string(3000, byte)).ok());
    ASSERT_TRUE(writer.CutDurably(BarrierKind::kCommit).ok());
    ASSERT_TRUE(writer.file().WaitApplied(absl::Seconds(60)).ok());
    ASSERT_TRUE(writer.End().ok());
  };
  make("x.h5", 'a');
  auto reader = *(*store_->OpenFile("x.h5"))->OpenVersion(1);
  ASSERT_TRUE(store_->Move("x.h5", "y.h5").ok());
  make("x.h5", 'b');
  for (int i = 0; i < kFiles; ++i) make(NameOf(i), 'c');  // Closes all indexes that can be closed.
  std::string bytes(3000, '\0');
  const absl::Status read = reader->Read(0, absl::MakeSpan(bytes));
  EXPECT_TRUE(absl::IsUnavailable(read)) << read;
  EXPECT_EQ(ReadVersion(**store_->OpenFile("y.h5"), 1), std::string(3000, 'a'));
  EXPECT_EQ(ReadVersion(**store_->OpenFile("x.h5"), 1), std::string(3000, 'b'));
}

}  // namespace
}  // namespace h5mirror::store
