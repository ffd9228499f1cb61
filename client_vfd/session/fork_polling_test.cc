#include "client_vfd/session/fork_polling.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

TEST(ForkPollingTest, RenewedSetWatchesANewEventUnderTheSameNumbers) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  const int wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.u64 = 0x7fff12345678;
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, wakeup, &event), 0);
  const int other_process = dup(wakeup);
  const std::optional<PollSet> before = ReadPollSet(epoll);
  ASSERT_TRUE(before.has_value());
  // The parent goes on with the shared one, before this process looks.
  int of_the_parent[2];
  ASSERT_EQ(pipe(of_the_parent), 0);
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, of_the_parent[0], &event), 0);
  ASSERT_TRUE(RenewPollSet(*before));
  epoll_event got{};
  eventfd_write(other_process, 1);
  EXPECT_EQ(epoll_wait(epoll, &got, 1, 0), 0) << "still sees the old one";
  eventfd_write(wakeup, 1);
  ASSERT_EQ(epoll_wait(epoll, &got, 1, 0), 1);
  EXPECT_EQ(got.data.u64, event.data.u64);
  for (const int fd : {epoll, wakeup, other_process, of_the_parent[0], of_the_parent[1]}) close(fd);
}

TEST(ForkPollingTest, SetThatWatchesAnythingElseIsRefused) {
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  epoll_event event{};
  event.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_ends[0], &event), 0);
  const std::vector<int> all = EpollDescriptors();
  EXPECT_EQ(std::count(all.begin(), all.end(), epoll), 1);
  EXPECT_FALSE(ReadPollSet(epoll).has_value());
  EXPECT_FALSE(ReadPollSet(pipe_ends[0]).has_value());
  for (const int fd : {epoll, pipe_ends[0], pipe_ends[1]}) close(fd);
}

// As gRPC does when it begins: one epoll set, which watches an eventfd.
class FakeGrpc {
 public:
  ~FakeGrpc() {
    for (const int fd : {epoll_, wakeup_}) close(fd);
  }
  void Start() {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    wakeup_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    epoll_event event{};
    event.events = EPOLLIN;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeup_, &event);
  }
  // The event shows in the set of this process.
  bool Wakes(int eventfd) const {
    epoll_event got{};
    eventfd_write(eventfd, 1);
    return epoll_wait(epoll_, &got, 1, 0) == 1;
  }
  int wakeup() const { return wakeup_; }

 private:
  int epoll_ = -1;
  int wakeup_ = -1;
};

TEST(ForkPollingTest, AChildGetsSetsOfItsOwn) {
  FakeGrpc grpc;
  ForkPolling polling;
  polling.Begin([&] { grpc.Start(); });
  const int of_the_parent = dup(grpc.wakeup());
  polling.Read(false);
  EXPECT_TRUE(polling.Renew());
  EXPECT_FALSE(grpc.Wakes(of_the_parent));
  EXPECT_TRUE(grpc.Wakes(grpc.wakeup()));
  close(of_the_parent);
}

TEST(ForkPollingTest, AProcessThatNeverBeganGrpcMayForkAsItLikes) {
  ForkPolling polling;
  polling.Read(false);
  EXPECT_TRUE(polling.Renew());
}

TEST(ForkPollingTest, AChildCannotUseGrpcThatHasNotEnded) {
  FakeGrpc grpc;
  ForkPolling polling;
  polling.Begin([&] { grpc.Start(); });
  polling.Read(true);
  EXPECT_FALSE(polling.Renew());
  polling.Read(false);
  EXPECT_TRUE(polling.Renew()) << "the next fork finds it ended";
}

TEST(ForkPollingTest, AChildCannotUseGrpcThatSomebodyElseBegan) {
  ForkPolling polling;
  polling.Begin([] {});
  polling.Read(false);
  EXPECT_FALSE(polling.Renew());
}

}  // namespace
}  // namespace h5mirror::vfd
