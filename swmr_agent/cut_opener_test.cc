#include "swmr_agent/cut_opener.h"

#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "rpc/agent_open.h"

namespace h5mirror::agent {
namespace {

using Answer = rpc::AgentOpenAnswer;

// A reader's end of a connection whose question the opener has.
OwnedFd Ask(CutOpener& opener, uid_t user, const std::string& name) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  auto reader = std::make_shared<OpenReader>();
  reader->fd = OwnedFd(ends[0]);
  rpc::CutMapQuestion question;
  question.name = name;
  opener.Take(std::move(reader), user, std::move(question));
  return OwnedFd(ends[1]);
}

// The snapshot's bytes of the answer; -1: the opener has gone without one.
int64_t SnapshotBytesFrom(const OwnedFd& fd) {
  Answer answer{};
  const ssize_t got = recv(fd.get(), &answer, sizeof(answer), MSG_WAITALL);
  return got == sizeof(answer) ? answer.snapshot_bytes : -1;
}

TEST(CutOpenerTest, AnOpenThatWaitsHoldsUpNoOther) {
  absl::Notification goes_on;
  CutOpener opener([&](uid_t, const rpc::CutMapQuestion& question) -> absl::StatusOr<OpenedCut> {
    if (question.name == "slow") goes_on.WaitForNotification();
    OpenedCut cut;
    cut.snapshot.set_cut(1);
    return cut;
  });
  const OwnedFd slow = Ask(opener, 1, "slow");
  EXPECT_GT(SnapshotBytesFrom(Ask(opener, 1, "quick")), 0);
  goes_on.Notify();
  EXPECT_GT(SnapshotBytesFrom(slow), 0);
}

TEST(CutOpenerTest, AUserWithManyOpensHoldsUpNoOtherUser) {
  absl::Notification goes_on;
  CutOpener opener([&](uid_t user, const rpc::CutMapQuestion&) -> absl::StatusOr<OpenedCut> {
    if (user == 1) goes_on.WaitForNotification();
    return absl::NotFoundError("no such file");
  });
  std::vector<OwnedFd> readers;
  for (size_t i = 0; i < 2 * CutOpener::kThreadsMax; ++i) readers.push_back(Ask(opener, 1, "a"));
  EXPECT_EQ(SnapshotBytesFrom(Ask(opener, 2, "a")), 0);
  goes_on.Notify();
  for (const OwnedFd& reader : readers) EXPECT_EQ(SnapshotBytesFrom(reader), 0);
}

TEST(CutOpenerTest, AtItsEndItAnswersTheOpenThatIsUnderWay) {
  absl::Notification has_begun, goes_on;
  auto opener = std::make_unique<CutOpener>(
      [&](uid_t, const rpc::CutMapQuestion&) -> absl::StatusOr<OpenedCut> {
        has_begun.Notify();
        goes_on.WaitForNotification();
        return absl::NotFoundError("no such file");
      });
  const OwnedFd reader = Ask(*opener, 1, "a");
  has_begun.WaitForNotification();
  std::thread ending([&] { opener.reset(); });
  goes_on.Notify();
  ending.join();
  EXPECT_EQ(SnapshotBytesFrom(reader), 0);
}

}  // namespace
}  // namespace h5mirror::agent
