#include "server/parts_ahead.h"

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"

namespace h5mirror::server {
namespace {

// Parts "0", "1", ... "count - 1".
PartsAhead::Read Numbers(int count, std::atomic<int>& read) {
  return [count, &read](v1::ReadVersionResponse& part) -> absl::StatusOr<bool> {
    const int number = read.fetch_add(1);
    if (number == count) return false;
    part.set_data(absl::StrCat(number));
    return true;
  };
}

void ExpectAll(PartsAhead& parts, int count) {
  v1::ReadVersionResponse part;
  for (int i = 0; i < count; ++i) {
    ASSERT_TRUE(parts.Next(part).value());
    EXPECT_EQ(part.data(), absl::StrCat(i));
  }
  EXPECT_FALSE(parts.Next(part).value());
}

TEST(PartsAheadTest, GivesAllPartsInTheirOrder) {
  WorkerPool pool(2, "test");
  std::atomic<int> read = 0;
  PartsAhead parts(pool, Numbers(1000, read));
  ExpectAll(parts, 1000);
  EXPECT_EQ(read, 1001) << "nothing is read behind the end";
}

TEST(PartsAheadTest, ReadsOneAhead) {
  WorkerPool pool(1, "test");
  std::atomic<int> count = 0;
  absl::Notification second;
  PartsAhead parts(pool, [&](v1::ReadVersionResponse&) -> absl::StatusOr<bool> {
    if (++count == 2) second.Notify();
    return true;
  });
  v1::ReadVersionResponse part;
  ASSERT_TRUE(parts.Next(part).value());
  EXPECT_TRUE(second.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST(PartsAheadTest, DoesNotWaitForABusyPool) {
  WorkerPool pool(1, "test");
  absl::Notification done;
  pool.Schedule([&] { done.WaitForNotification(); });
  std::atomic<int> read = 0;
  {
    PartsAhead parts(pool, Numbers(10, read));
    ExpectAll(parts, 10);
  }
  EXPECT_EQ(read, 11);
  done.Notify();
}

TEST(PartsAheadTest, LeavesNothingBehindWhereNobodyReadsToTheEnd) {
  WorkerPool pool(2, "test");
  for (int i = 0; i < 500; ++i) {
    std::atomic<int> read = 0;  // The sanitizers tell of a task that outlives it.
    PartsAhead parts(pool, Numbers(10, read));
    v1::ReadVersionResponse part;
    for (int n = 0; n < i % 4; ++n) ASSERT_TRUE(parts.Next(part).value());
  }
}

TEST(PartsAheadTest, AnErrorComesAfterThePartsBeforeIt) {
  WorkerPool pool(1, "test");
  int count = 0;
  PartsAhead parts(pool, [&](v1::ReadVersionResponse&) -> absl::StatusOr<bool> {
    if (++count == 3) return absl::DataLossError("a page");
    return true;
  });
  v1::ReadVersionResponse part;
  EXPECT_TRUE(parts.Next(part).value());
  EXPECT_TRUE(parts.Next(part).value());
  EXPECT_EQ(parts.Next(part).status().message(), "a page");
  EXPECT_EQ(parts.Next(part).status().message(), "a page") << "and it stays";
  EXPECT_EQ(count, 3);
}

}  // namespace
}  // namespace h5mirror::server
