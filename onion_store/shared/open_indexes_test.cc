#include "onion_store/shared/open_indexes.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;

// As VersionIndex: a call holds its lock.
class FakeIndex final : public ClosableIndex {
 public:
  explicit FakeIndex(OpenIndexes& open) : open_(open) {}
  ~FakeIndex() override { open_.Closed(*this); }
  bool TryClose() override {
    if (!mutex_.TryLock()) return false;
    is_open_ = false;
    mutex_.Unlock();
    return true;
  }
  void Call() {
    absl::MutexLock lock(&mutex_);
    open_.Use(*this);
    if (is_open_) return;
    is_open_ = true;
    ++opens_;
    open_.Opened(*this);
  }
  bool is_open() {
    absl::MutexLock lock(&mutex_);
    return is_open_;
  }
  int opens() {
    absl::MutexLock lock(&mutex_);
    return opens_;
  }
  absl::Mutex& mutex() { return mutex_; }

 private:
  OpenIndexes& open_;
  absl::Mutex mutex_;
  bool is_open_ = false;
  int opens_ = 0;
};

class OpenIndexesTest : public testing::Test {
 protected:
  void Make(int count) {
    for (int i = 0; i < count; ++i) indexes_.push_back(std::make_unique<FakeIndex>(open_));
  }
  std::vector<bool> AreOpen() {
    std::vector<bool> are_open;
    for (const auto& index : indexes_) are_open.push_back(index->is_open());
    return are_open;
  }

  MemoryBudget budget_{1 << 30};
  OpenIndexes open_{budget_, 3};
  std::vector<std::unique_ptr<FakeIndex>> indexes_;
};

TEST_F(OpenIndexesTest, TheLeastRecentlyUsedOneIsClosed) {
  Make(4);
  for (int i : {0, 1, 2, 0, 1, 3}) indexes_[i]->Call();
  EXPECT_THAT(AreOpen(), ElementsAre(true, true, false, true));
  indexes_[2]->Call();
  EXPECT_THAT(AreOpen(), ElementsAre(false, true, true, true));
  EXPECT_EQ(indexes_[2]->opens(), 2);
}

TEST_F(OpenIndexesTest, TheirMemoryCounts) {
  Make(5);
  for (const auto& index : indexes_) index->Call();
  EXPECT_EQ(budget_.used_bytes(), 3 * OpenIndexes::kIndexBytes);
  indexes_.clear();
  EXPECT_EQ(budget_.used_bytes(), 0u);
  EXPECT_EQ(open_.open_count(), 0u);
}

TEST_F(OpenIndexesTest, OneInTheMiddleOfACallStaysOpen) {
  Make(5);
  for (int i : {0, 1, 2}) indexes_[i]->Call();
  {
    absl::MutexLock in_a_call(&indexes_[0]->mutex());
    indexes_[3]->Call();
  }
  EXPECT_THAT(AreOpen(), ElementsAre(true, false, true, true, false));
}

TEST_F(OpenIndexesTest, WhereAllAreInTheMiddleOfCallsThereMayBeMore) {
  Make(5);
  for (int i : {0, 1, 2}) indexes_[i]->Call();
  {
    std::vector<std::unique_ptr<absl::MutexLock>> calls;
    for (int i : {0, 1, 2}) {
      calls.push_back(std::make_unique<absl::MutexLock>(&indexes_[i]->mutex()));
    }
    indexes_[3]->Call();
  }
  EXPECT_EQ(open_.open_count(), 4u);
  indexes_[4]->Call();
  EXPECT_EQ(open_.open_count(), 3u);
}

TEST_F(OpenIndexesTest, ManyThreadsOpenAndCloseThem) {
  Make(20);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      for (int i = 0; i < 5000; ++i) indexes_[(i * 7 + thread * 3) % 20]->Call();
    });
  }
  for (std::thread& thread : threads) thread.join();
  indexes_[0]->Call();
  indexes_[1]->Call();
  EXPECT_LE(open_.open_count(), 3u);
  int open = 0;
  for (const auto& index : indexes_) open += index->is_open();
  EXPECT_EQ(static_cast<size_t>(open), open_.open_count());
}

TEST(OpenIndexesMaxTest, IsAnEighthOfTheMemoryAndAtLeastSome) {
  EXPECT_EQ(OpenIndexes::MaxFor(uint64_t{256} << 20), 184u);
  EXPECT_EQ(OpenIndexes::MaxFor(1), 4u);
}

}  // namespace
}  // namespace h5mirror::store
