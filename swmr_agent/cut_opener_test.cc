#include "swmr_agent/cut_opener.h"

#include <sys/socket.h>

#include <atomic>
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

// A reader, and its end of the connection.
struct Reader {
  std::shared_ptr<OpenReader> at_agent;
  OwnedFd fd;
};

Reader Ask(CutOpener& opener, uid_t user, const std::string& name,
           const std::string& target = "server") {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  Reader reader{std::make_shared<OpenReader>(), OwnedFd(ends[1])};
  reader.at_agent->fd = OwnedFd(ends[0]);
  rpc::CutMapQuestion question;
  question.name = name;
  question.target = target;
  opener.Take(reader.at_agent, user, std::move(question));
  return reader;
}

// The snapshot's bytes of the answer; -1: the opener has gone without one.
int64_t SnapshotBytesFrom(const Reader& reader) {
  Answer answer{};
  const ssize_t got = recv(reader.fd.get(), &answer, sizeof(answer), MSG_WAITALL);
  return got == sizeof(answer) ? static_cast<int64_t>(answer.snapshot_bytes) : -1;
}

TEST(CutOpenerTest, AnOpenThatWaitsHoldsUpNoOther) {
  absl::Notification goes_on;
  CutOpener opener([&](uid_t, const rpc::CutMapQuestion& question) -> absl::StatusOr<OpenedCut> {
    if (question.name == "slow") goes_on.WaitForNotification();
    OpenedCut cut;
    cut.snapshot.set_cut(1);
    return cut;
  });
  const Reader slow = Ask(opener, 1, "slow");
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
  std::vector<Reader> readers;
  for (size_t i = 0; i < 2 * CutOpener::kThreadsMax; ++i) readers.push_back(Ask(opener, 1, "a"));
  EXPECT_EQ(SnapshotBytesFrom(Ask(opener, 2, "a")), 0);
  goes_on.Notify();
  for (const Reader& reader : readers) EXPECT_EQ(SnapshotBytesFrom(reader), 0);
}

TEST(CutOpenerTest, AServerThatHangsHoldsUpNoOpenAtAnotherOne) {
  absl::Notification goes_on;
  CutOpener opener([&](uid_t, const rpc::CutMapQuestion& asked) -> absl::StatusOr<OpenedCut> {
    if (asked.target == "hangs") goes_on.WaitForNotification();
    return absl::NotFoundError("no such file");
  });
  std::vector<Reader> readers;
  for (size_t i = 0; i < 2 * CutOpener::kThreadsMax; ++i) {
    readers.push_back(Ask(opener, 1, "a", "hangs"));
  }
  EXPECT_EQ(SnapshotBytesFrom(Ask(opener, 1, "a", "well")), 0);
  goes_on.Notify();
  for (const Reader& reader : readers) EXPECT_EQ(SnapshotBytesFrom(reader), 0);
}

TEST(CutOpenerTest, TheOpenOfAReaderThatHasGoneIsNotMade) {
  absl::Notification goes_on;
  std::atomic<int> late = 0;
  CutOpener opener([&](uid_t, const rpc::CutMapQuestion& asked) -> absl::StatusOr<OpenedCut> {
    if (asked.name == "late") ++late;
    goes_on.WaitForNotification();
    return absl::NotFoundError("no such file");
  });
  std::vector<Reader> readers;
  for (size_t i = 0; i < CutOpener::kAtServerMax; ++i) readers.push_back(Ask(opener, 1, "a"));
  for (int i = 0; i < 100; ++i) static_cast<void>(Ask(opener, 1, "late"));
  const Reader last = Ask(opener, 1, "a");
  goes_on.Notify();
  EXPECT_EQ(SnapshotBytesFrom(last), 0);
  EXPECT_EQ(late, 0);
}

TEST(CutOpenerTest, TooManyOpensThatWaitAreLeftToGrpc) {
  absl::Notification goes_on;
  CutOpener opener([&](uid_t, const rpc::CutMapQuestion&) -> absl::StatusOr<OpenedCut> {
    goes_on.WaitForNotification();
    return absl::NotFoundError("no such file");
  });
  std::vector<Reader> readers;
  for (size_t i = 0; i < CutOpener::kThreadsMax + CutOpener::kWaitingMax; ++i) {
    readers.push_back(Ask(opener, 1, "a"));
  }
  EXPECT_EQ(SnapshotBytesFrom(readers.back()), -1) << "it hangs up at once";
  goes_on.Notify();
  EXPECT_EQ(SnapshotBytesFrom(readers.front()), 0);
}

TEST(CutOpenerTest, AtItsEndItAnswersTheOpenThatIsUnderWay) {
  absl::Notification has_begun, goes_on;
  auto opener = std::make_unique<CutOpener>(
      [&](uid_t, const rpc::CutMapQuestion&) -> absl::StatusOr<OpenedCut> {
        has_begun.Notify();
        goes_on.WaitForNotification();
        return absl::NotFoundError("no such file");
      });
  const Reader reader = Ask(*opener, 1, "a");
  has_begun.WaitForNotification();
  std::thread ending([&] { opener.reset(); });
  goes_on.Notify();
  ending.join();
  EXPECT_EQ(SnapshotBytesFrom(reader), 0);
}

}  // namespace
}  // namespace h5mirror::agent
