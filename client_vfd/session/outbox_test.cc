#include "client_vfd/session/outbox.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using Kind = Outbox::Kind;
using testing::ElementsAre;
using testing::IsEmpty;

// Notes what it is given; a message by its size in bytes.
class FakeStream : public Stream {
 public:
  void Write(const grpc::ByteBuffer& message, Last last) override {
    calls.push_back(std::to_string(message.Length()) + (last == Last::kYes ? " last" : ""));
  }
  void HalfClose() override { calls.push_back("half-close"); }
  void Cancel() override { calls.push_back("cancel"); }
  void Abandon() override { calls.push_back("abandon"); }

  std::vector<std::string> calls;
};

grpc::ByteBuffer MessageOf(size_t size_bytes) {
  const grpc::Slice slice(std::string(size_bytes, 'x'));
  return {&slice, 1};
}

TEST(OutboxTest, OneMessageIsUnderWayAtATime) {
  FakeStream stream;
  Outbox outbox;
  outbox.Push(MessageOf(1), Kind::kData);
  outbox.Push(MessageOf(2), Kind::kKeepAlive);
  outbox.Begin(&stream);
  EXPECT_FALSE(outbox.WriteNext()) << "it takes nothing yet";
  outbox.OnWritable();
  EXPECT_TRUE(outbox.WriteNext());
  EXPECT_FALSE(outbox.WriteNext());
  EXPECT_THAT(stream.calls, ElementsAre("1"));
  outbox.OnWritable();
  EXPECT_TRUE(outbox.WriteNext());
  EXPECT_EQ(outbox.sending(), Kind::kKeepAlive);
  EXPECT_THAT(stream.calls, ElementsAre("1", "2"));
}

TEST(OutboxTest, TheLastMessageHalfCloses) {
  FakeStream stream;
  Outbox outbox;
  outbox.Begin(&stream);
  outbox.Push(MessageOf(1), Kind::kLast);
  outbox.OnWritable();
  EXPECT_TRUE(outbox.WriteNext());
  EXPECT_THAT(stream.calls, ElementsAre("1 last"));
}

TEST(OutboxTest, OneMessageIsReadyBesideTheOneUnderWay) {
  FakeStream stream;
  Outbox outbox;
  outbox.Begin(&stream);
  EXPECT_FALSE(outbox.is_full());
  outbox.Push(MessageOf(1), Kind::kData);
  EXPECT_TRUE(outbox.is_full());
  outbox.OnWritable();
  EXPECT_FALSE(outbox.is_full()) << "that one goes at once";
  outbox.Push(MessageOf(2), Kind::kData);
  EXPECT_TRUE(outbox.is_full());
}

TEST(OutboxTest, IdleIsAStreamThatCouldTakeSomething) {
  FakeStream stream;
  Outbox outbox;
  outbox.Begin(&stream);
  EXPECT_FALSE(outbox.is_idle());
  outbox.OnWritable();
  EXPECT_TRUE(outbox.is_idle());
  outbox.Push(MessageOf(1), Kind::kData);
  EXPECT_FALSE(outbox.is_idle());
}

TEST(OutboxTest, AStreamEndsWithOrWithoutALastMessage) {
  FakeStream stream;
  Outbox outbox;
  outbox.Begin(&stream);
  outbox.OnWritable();
  outbox.End();
  EXPECT_FALSE(outbox.is_writable());
  outbox.OnWritable();
  outbox.End(MessageOf(3));
  EXPECT_FALSE(outbox.is_writable());
  EXPECT_THAT(stream.calls, ElementsAre("half-close", "3 last"));
}

TEST(OutboxTest, AForgottenStreamGetsNothingMore) {
  FakeStream stream;
  Outbox outbox;
  outbox.Begin(&stream);
  outbox.Push(MessageOf(1), Kind::kData);
  outbox.OnWritable();
  EXPECT_EQ(outbox.Forget(), &stream);
  EXPECT_FALSE(outbox.has_stream());
  EXPECT_EQ(outbox.size(), 0u);
  EXPECT_FALSE(outbox.WriteNext());
  EXPECT_EQ(outbox.Forget(), nullptr);
  EXPECT_THAT(stream.calls, IsEmpty());
}

}  // namespace
}  // namespace h5mirror::vfd
