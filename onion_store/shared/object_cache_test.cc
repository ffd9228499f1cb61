#include "onion_store/shared/object_cache.h"

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onion_store/testing/fault_object_store.h"

namespace h5mirror::store {
namespace {

constexpr uint64_t kBlock = ObjectCache::kBlockBytes;

class TextSource final : public ObjectSource {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)) {}
  uint64_t size_bytes() const override { return text_.size(); }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    text_.copy(out.data(), out.size(), offset);
    return absl::OkStatus();
  }

 private:
  const std::string text_;
};

class ObjectCacheTest : public testing::Test {
 protected:
  ObjectCacheTest() {
    for (uint64_t i = 0; i < 10; ++i) text_ += std::string(kBlock, static_cast<char>('a' + i));
    text_ += "the end";
    TextSource source(text_);
    EXPECT_TRUE(store_->Put("o", source, absl::Seconds(1)).ok());
  }
  absl::StatusOr<std::string> Read(uint64_t offset, size_t size) {
    std::string out(size, '\0');
    const absl::Status read = cache_.Read("o", text_.size(), offset, absl::MakeSpan(out));
    if (!read.ok()) return read;
    return out;
  }
  int gets() const { return store_->CountCalls("get"); }

  std::string text_;
  std::shared_ptr<FaultObjectStore> store_ = std::make_shared<FaultObjectStore>();
  MemoryBudget budget_{uint64_t{1} << 30};
  ObjectCache cache_{store_, budget_, 4 * kBlock};
};

TEST_F(ObjectCacheTest, RangesOverBlocksAndAtTheEndAreRight) {
  const std::vector<std::pair<uint64_t, size_t>> ranges{
      {0, 1}, {kBlock - 3, 6}, {kBlock * 2 - 1, kBlock + 2}, {text_.size() - 9, 9}};
  for (const auto& [offset, size] : ranges) {
    EXPECT_TRUE(Read(offset, size).value_or("") == text_.substr(offset, size)) << offset;
  }
}

TEST_F(ObjectCacheTest, ABlockIsAskedForOnce) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Read(100 * i, 100).ok());
  EXPECT_EQ(gets(), 1);
}

TEST_F(ObjectCacheTest, ItsMemoryIsBoundedAndCountedAndTheLeastRecentGoes) {
  for (const uint64_t block : {0, 1, 2, 3, 0, 4}) EXPECT_TRUE(Read(block * kBlock, 1).ok());
  EXPECT_EQ(gets(), 5);
  EXPECT_EQ(budget_.used_bytes(), 4 * kBlock);
  EXPECT_TRUE(Read(0, 1).ok());
  EXPECT_EQ(gets(), 5) << "block 0 was used after 1";
  EXPECT_TRUE(Read(kBlock, 1).ok());
  EXPECT_EQ(gets(), 6);
}

TEST_F(ObjectCacheTest, WhatIsForgottenIsAskedForAgain) {
  EXPECT_FALSE(cache_.Forget("o"));
  EXPECT_TRUE(Read(0, 1).ok());
  EXPECT_FALSE(cache_.Forget("n"));
  EXPECT_TRUE(cache_.Forget("o"));
  EXPECT_EQ(budget_.used_bytes(), 0u);
  EXPECT_TRUE(Read(0, 1).ok());
  EXPECT_EQ(gets(), 2);
}

TEST_F(ObjectCacheTest, AnErrorIsNotKept) {
  store_->FailCalls(1, absl::UnavailableError("503"));
  EXPECT_TRUE(absl::IsUnavailable(Read(0, 1).status()));
  EXPECT_EQ(Read(0, 1).value_or(""), "a");
}

TEST_F(ObjectCacheTest, ReadsBeyondTheEndAreRefused) {
  EXPECT_TRUE(absl::IsOutOfRange(Read(text_.size() - 1, 2).status()));
  EXPECT_TRUE(absl::IsOutOfRange(Read(text_.size() + 1, 1).status()));
  EXPECT_EQ(gets(), 0);
}

TEST_F(ObjectCacheTest, WithoutAnArchiveItSaysSo) {
  ObjectCache none(nullptr, budget_, kBlock);
  std::string out(1, '\0');
  EXPECT_TRUE(absl::IsFailedPrecondition(none.Read("o", 1, 0, absl::MakeSpan(out))));
}

// The first one gets the block and waits in the call, the others wait for it.
TEST_F(ObjectCacheTest, ReadersOfOneBlockShareTheCallAndOthersGoOn) {
  absl::Notification called, go_on;
  store_->SetOnCall([&](const std::string&) {
    if (called.HasBeenNotified()) return;
    called.Notify();
    go_on.WaitForNotification();
  });
  std::vector<std::thread> readers;
  readers.emplace_back([&] { EXPECT_EQ(Read(0, 1).value_or(""), "a"); });
  called.WaitForNotification();
  EXPECT_EQ(Read(kBlock, 1).value_or(""), "b") << "no lock is held meanwhile";
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] { EXPECT_EQ(Read(5, 1).value_or(""), "a"); });
  }
  go_on.Notify();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(gets(), 2);
}

TEST_F(ObjectCacheTest, ACallThatHangsHoldsNoOtherReader) {
  absl::Notification end;
  std::atomic<int> calls = 0;
  store_->SetOnCall([&](const std::string&) {
    if (calls++ == 0) end.WaitForNotification();
  });
  std::thread first([&] { EXPECT_EQ(*Read(0, 1), "a"); });
  while (calls == 0) std::this_thread::yield();
  EXPECT_EQ(*Read(0, 1), "a") << "it has made a call of its own";
  end.Notify();
  first.join();
  EXPECT_EQ(*Read(0, 1), "a");
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace h5mirror::store
