#include "bench/delay_line.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::bench {
namespace {

using std::chrono::milliseconds;

// A line from `sender` to `receiver`, both ends of socket pairs whose other ends it holds.
class DelayLineTest : public testing::Test {
 protected:
  DelayLineTest() {
    for (auto* pair : {&in_, &out_}) {
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair->data()), 0);
    }
    line_ = std::make_unique<DelayLine>(in_[1], out_[0], milliseconds(5));
  }
  ~DelayLineTest() override {
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

  std::array<int, 2> in_ = {};
  std::array<int, 2> out_ = {};
  std::unique_ptr<DelayLine> line_;
  const SteadyTime start_ = std::chrono::steady_clock::now();
};

TEST_F(DelayLineTest, NothingArrivesBeforeItsTime) {
  Send("a cut");
  ASSERT_TRUE(line_->Receive(start_));
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(4)));
  EXPECT_EQ(Arrived(), "");
  EXPECT_EQ(line_->NextDelivery(), start_ + milliseconds(5));
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(5)));
  EXPECT_EQ(Arrived(), "a cut");
  EXPECT_EQ(line_->delivered_bytes(), 5u);
}

TEST_F(DelayLineTest, BytesSentApartArriveApartAndInOrder) {
  Send("one,");
  ASSERT_TRUE(line_->Receive(start_));
  Send("two");
  ASSERT_TRUE(line_->Receive(start_ + milliseconds(3)));
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(7)));
  EXPECT_EQ(Arrived(), "one,");
  ASSERT_TRUE(line_->Deliver(start_ + milliseconds(8)));
  EXPECT_EQ(Arrived(), "two");
}

TEST_F(DelayLineTest, TheEndIsDelayedToo) {
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

TEST_F(DelayLineTest, AFullReceiverGetsTheRestOnceItReads) {
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

}  // namespace
}  // namespace h5mirror::bench
