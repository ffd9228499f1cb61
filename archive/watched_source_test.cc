// The pace counts only bytes that are sent.
#include "archive/watched_source.h"

#include <atomic>
#include <string>

#include "absl/time/clock.h"
#include "gtest/gtest.h"

namespace h5mirror::archive {
namespace {

class Zeros final : public store::ObjectSource {
 public:
  uint64_t size_bytes() const override { return 1000; }
  absl::Status Read(uint64_t, absl::Span<char>) override { return absl::OkStatus(); }
};

class WatchedSourceTest : public testing::Test {
 protected:
  void ReadAll(WatchedSource& source) {
    std::string piece(100, '\0');
    for (uint64_t at = 0; at < source.size_bytes(); at += piece.size()) {
      EXPECT_TRUE(source.Read(at, absl::MakeSpan(piece)).ok());
    }
  }

  absl::Time now_ = absl::UnixEpoch();
  std::atomic<bool> stopped_{false};
  Pace pace_{1000, {[this] { return now_; }, [this](absl::Duration time) { now_ += time; }}};
  Zeros zeros_;
  int begun_ = 0, ended_ = 0;
  WatchedSource source_{zeros_, &pace_, 1000, stopped_,
                        [this](bool is_begin) { ++(is_begin ? begun_ : ended_); }};
};

TEST_F(WatchedSourceTest, WhatIsSentIsPacedAndSumsAreNot) {
  ReadAll(source_);
  EXPECT_EQ(now_, absl::UnixEpoch());
  ReadAll(source_);
  EXPECT_EQ(now_ - absl::UnixEpoch(), absl::Milliseconds(900)) << "the last piece delays the next";
  ReadAll(source_);  // a second try
  EXPECT_EQ(now_ - absl::UnixEpoch(), absl::Milliseconds(1900));
  EXPECT_EQ(begun_, 30);
  EXPECT_EQ(ended_, 30);
}

TEST_F(WatchedSourceTest, AStopEndsIt) {
  stopped_ = true;
  char byte = 0;
  EXPECT_TRUE(absl::IsUnavailable(source_.Read(0, absl::MakeSpan(&byte, 1))));
}

}  // namespace
}  // namespace h5mirror::archive
