#include "rpc/read_ahead.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "gtest/gtest.h"

namespace h5mirror::rpc {
namespace {

constexpr uint64_t kRing = 1 << 20;
constexpr uint64_t kEnd = 20 * kRing + 77;
constexpr uint64_t kPiece = 300'001;  // fits neither ring nor reads

using Sink = absl::FunctionRef<absl::Status(uint64_t offset, std::string_view data)>;

// Of a file whose every fourth piece is a hole. Made before anything is read: a call ends when
// nobody takes anything for 100 ms.
std::string_view Content(uint64_t offset, uint64_t length) {
  static const auto* const all = [] {
    auto* const made = new std::string(kEnd, '\0');
    for (uint64_t i = 0; i < kEnd; ++i) {
      if (i / kPiece % 4 != 3) (*made)[i] = static_cast<char>(i * 7 / 5);
    }
    return made;
  }();
  return std::string_view(*all).substr(offset, length);
}

absl::Status Send(uint64_t offset, uint64_t length, Sink sink) {
  for (const uint64_t end = offset + length; offset < end;) {
    const uint64_t part = std::min(end - offset, kPiece - offset % kPiece);
    if (offset / kPiece % 4 != 3) {
      H5M_RETURN_IF_ERROR(sink(offset, Content(offset, part)));
    }
    offset += part;
  }
  return absl::OkStatus();
}

std::unique_ptr<ReadAhead> Start(StreamReader reader, uint64_t begin = 0) {
  Content(0, 0);
  return ReadAhead::Start(std::move(reader), begin, kEnd, kRing, kRing / 8);
}

std::unique_ptr<ReadAhead> StartSending(uint64_t begin = 0) {
  return Start([](uint64_t offset, uint64_t length, Sink sink,
                  CallCanceller&) { return Send(offset, length, sink); },
               begin);
}

// Takes `length` bytes, and compares.
void Expect(ReadAhead& ahead, uint64_t offset, uint64_t length) {
  ASSERT_TRUE(ahead.Covers(offset)) << offset;
  std::string out(length, 'z');
  ASSERT_EQ(ahead.Take(offset, absl::MakeSpan(out)), length) << offset;
  const std::string_view wanted = Content(offset, length);
  if (out == wanted) return;
  const auto differs = std::mismatch(out.begin(), out.end(), wanted.begin()).first;
  FAIL() << "at " << offset + static_cast<uint64_t>(differs - out.begin());
}

TEST(ReadAheadTest, GivesAllBytesInOrder) {
  const auto ahead = StartSending(1234);
  uint64_t offset = 1234;
  for (uint64_t length : {uint64_t{1}, 3 * kRing, uint64_t{65536}, 5 * kRing}) {
    Expect(*ahead, offset, length);
    offset += length;
  }
  Expect(*ahead, offset, kEnd - offset);
  EXPECT_FALSE(ahead->Covers(kEnd));
}

TEST(ReadAheadTest, WhatComesJustWhenSomebodyBeginsToWaitKeepsItsPlace) {
  constexpr uint64_t kBytes = 4 << 20;
  const auto ahead = Start([](uint64_t offset, uint64_t, Sink sink, CallCanceller&) {
    for (; offset < kBytes; offset += 64) {
      H5M_RETURN_IF_ERROR(sink(offset, Content(offset, 64)));
    }
    return absl::OkStatus();
  });
  for (uint64_t offset = 0; offset < kBytes; offset += 256) {
    Expect(*ahead, offset, 256);
    if (HasFatalFailure()) return;
  }
}

TEST(ReadAheadTest, WhatIsSkippedIsForgotten) {
  const auto ahead = StartSending();
  Expect(*ahead, 100'000, 10);
  EXPECT_FALSE(ahead->Covers(99'999));
  EXPECT_FALSE(ahead->Covers(100'009));
  EXPECT_FALSE(ahead->Covers(100'010 + 4 * kRing)) << "a skip too far";
  Expect(*ahead, 900'000, kRing);
}

TEST(ReadAheadTest, IsNeverFurtherAheadThanWasTakenOrTheRingHolds) {
  std::atomic<uint64_t> sent = 0;
  const auto ahead = Start([&](uint64_t offset, uint64_t, Sink sink, CallCanceller&) {
    const std::string bytes(1000, 'x');
    for (;; offset += bytes.size()) {
      H5M_RETURN_IF_ERROR(sink(offset, bytes));
      sent = offset + bytes.size();
    }
  });
  std::string out(1000, 'z');
  ASSERT_EQ(ahead->Take(0, absl::MakeSpan(out)), out.size());
  // It pauses, and after a second without a read it ends; what it had come to is bounded.
  while (ahead->Covers(1000 + sent)) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_LE(sent, 1000 + kRing / 8 + 1000);
  out.resize(kRing);
  EXPECT_EQ(ahead->Take(1000, absl::MakeSpan(out)), kRing / 8 + 1000) << "what had come by then";
  EXPECT_FALSE(ahead->Covers(ahead->next()));
}

TEST(ReadAheadTest, AFailureEndsIt) {
  const auto ahead = Start([](uint64_t, uint64_t, Sink sink, CallCanceller&) -> absl::Status {
    H5M_RETURN_IF_ERROR(sink(0, "abc"));
    return absl::UnavailableError("gone");
  });
  std::string out(10, 'z');
  EXPECT_EQ(ahead->Take(0, absl::MakeSpan(out)), 3);
  EXPECT_EQ(out.substr(0, 3), "abc");
  EXPECT_FALSE(ahead->Covers(3));
  EXPECT_TRUE(ahead->came());
}

TEST(ReadAheadTest, BytesThatWereNotAskedForAreNotTaken) {
  const auto ahead =
      Start([](uint64_t, uint64_t, Sink sink, CallCanceller&) { return sink(kEnd - 1, "abc"); });
  std::string out(10, 'z');
  EXPECT_EQ(ahead->Take(0, absl::MakeSpan(out)), 0);
  EXPECT_FALSE(ahead->came());
}

// A server that says nothing, until the call is cancelled.
StreamReader Silent() {
  return [](uint64_t, uint64_t, Sink, CallCanceller& canceller) {
    absl::Notification cancelled;
    canceller.Attach([&] { cancelled.Notify(); });
    cancelled.WaitForNotification();
    canceller.Detach();
    return absl::CancelledError("");
  };
}

TEST(ReadAheadTest, ASilentServerIsNotWaitedForAtTheEnd) {
  EXPECT_NE(Start(Silent()), nullptr);  // And gone, or this test hangs.
}

TEST(ReadAheadTest, AForkEndsAllCalls) {
  const auto silent = Start(Silent());
  const auto sending = StartSending();
  ReadAhead::PrepareFork();
  EXPECT_FALSE(silent->Covers(0));
  EXPECT_FALSE(sending->Covers(kEnd - 1));
  ReadAhead::AfterFork();
  Expect(*StartSending(), 0, kRing);
}

}  // namespace
}  // namespace h5mirror::rpc
