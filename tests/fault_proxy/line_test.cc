#include "tests/fault_proxy/line.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::fault_proxy {
namespace {

using std::chrono::milliseconds;

// A line from `sender` to `receiver`, both ends of socket pairs whose other ends it holds.
class LineTest : public testing::Test {
 protected:
  LineTest() {
    for (auto* pair : {&in_, &out_}) {
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair->data()), 0);
    }
    line_ = std::make_unique<Line>(in_[1], out_[0], weather_);
  }
  ~LineTest() override {
    for (const int fd : {in_[0], in_[1], out_[0], out_[1]}) close(fd);
  }

  void Send(const std::string& text) {
    ASSERT_EQ(write(in_[0], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  // What has arrived so far; "EOF" at the end of stream.
  std::string Arrived() {
    std::string text(1 << 16, '\0');
    const ssize_t size = read(out_[1], text.data(), text.size());
    if (size == 0) return "EOF";
    return text.substr(0, std::max<ssize_t>(0, size));
  }

  Weather weather_ = {.delay = milliseconds(5)};
  std::array<int, 2> in_ = {};
  std::array<int, 2> out_ = {};
  std::unique_ptr<Line> line_;
  const SteadyTime start_ = std::chrono::steady_clock::now();
};

TEST_F(LineTest, NothingArrivesBeforeItsTime) {
  Send("a cut");
  ASSERT_TRUE(line_->Receive(start_));
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(4)));
  EXPECT_EQ(Arrived(), "");
  EXPECT_EQ(line_->NextDelivery(), start_ + milliseconds(5));
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(5)));
  EXPECT_EQ(Arrived(), "a cut");
  EXPECT_EQ(line_->delivered_bytes(), 5u);
}

TEST_F(LineTest, BytesSentApartArriveApartAndInOrder) {
  Send("one,");
  ASSERT_TRUE(line_->Receive(start_));
  Send("two");
  ASSERT_TRUE(line_->Receive(start_ + milliseconds(3)));
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(7)));
  EXPECT_EQ(Arrived(), "one,");
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(8)));
  EXPECT_EQ(Arrived(), "two");
}

TEST_F(LineTest, TheEndIsDelayedToo) {
  Send("last");
  shutdown(in_[0], SHUT_WR);
  ASSERT_TRUE(line_->Receive(start_));
  EXPECT_FALSE(line_->wants_input());
  EXPECT_FALSE(line_->done());
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(5)));
  EXPECT_EQ(Arrived(), "last");
  EXPECT_EQ(Arrived(), "EOF");
  EXPECT_TRUE(line_->done());
}

TEST_F(LineTest, AFullReceiverGetsTheRestOnceItReads) {
  const std::string sent(8 << 20, 'x');
  size_t sent_bytes = 0;
  std::string arrived;
  bool was_full = false;
  while (arrived.size() < sent.size()) {
    const ssize_t size = write(in_[0], sent.data() + sent_bytes, sent.size() - sent_bytes);
    if (size > 0) sent_bytes += size;
    ASSERT_TRUE(line_->Receive(start_));
    ASSERT_TRUE(line_->Deliver(start_ + milliseconds(5)));
    was_full |= line_->receiver_full();
    arrived += Arrived();
    line_->ReceiverReady();
  }
  EXPECT_TRUE(was_full);
  EXPECT_EQ(arrived, sent);
}

TEST_F(LineTest, WhatIsHeldArrivesOnceItIsNot) {
  Send("late");
  ASSERT_TRUE(line_->Receive(start_));
  weather_.held = true;
  Send(" and later");
  ASSERT_TRUE(line_->Receive(start_));
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(50)));
  EXPECT_EQ(Arrived(), "");
  EXPECT_EQ(line_->NextDelivery(), SteadyTime::max());
  weather_.held = false;
  ASSERT_TRUE(line_->Receive(start_ + milliseconds(50)));
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(55)));
  EXPECT_EQ(Arrived(), "late and later");
}

TEST_F(LineTest, WhatVanishesNeverArrivesNorDoesItsEnd) {
  Send("waits");
  ASSERT_TRUE(line_->Receive(start_));
  line_->Vanish();
  Send("more");
  shutdown(in_[0], SHUT_WR);
  ASSERT_TRUE(line_->Receive(start_));
  EXPECT_TRUE(line_->ended());
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(50)));
  EXPECT_EQ(Arrived(), "");
  EXPECT_FALSE(line_->done());
}

TEST_F(LineTest, ARateIsKeptAndTheRestStaysWithTheSender) {
  weather_.rate_bytes_per_s = 1 << 20;
  const std::string sent(2 << 20, 'x');
  const ssize_t sent_bytes = write(in_[0], sent.data(), sent.size());
  ASSERT_GT(sent_bytes, 64 << 10);
  size_t arrived_bytes = 0;
  for (int ms = 5; ms <= 105; ++ms) {
    ASSERT_TRUE(line_->Receive(start_ + milliseconds(ms)));
    ASSERT_TRUE(line_->Deliver(start_ + milliseconds(ms)));
    arrived_bytes += Arrived().size();
  }
  EXPECT_GE(arrived_bytes, 80u << 10);
  EXPECT_LE(arrived_bytes, 160u << 10);
}

TEST_F(LineTest, ALimitIsTakenAndNoByteMore) {
  line_->set_limit(6);
  Send("a frame");
  ASSERT_TRUE(line_->Receive(start_));
  EXPECT_FALSE(line_->spent());
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(5)));
  EXPECT_EQ(Arrived(), "a fram");
  EXPECT_TRUE(line_->spent());
}

TEST_F(LineTest, ARecordingHasWhatPassed) {
  std::string recording;
  line_->Record(&recording);
  for (const char* text : {"one,", "two"}) {
    Send(text);
    ASSERT_TRUE(line_->Receive(start_));
  }
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(5)));
  EXPECT_EQ(Arrived(), "one,two");
  EXPECT_EQ(recording, "one,two");
}

}  // namespace
}  // namespace h5mirror::fault_proxy
