// Sessions that begin or end while another server takes their file's cell over, or that meet
// servers of another cluster in their list.
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "client_vfd/session/session.h"
#include "client_vfd/session/testing/fake_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/elsewhere.h"

namespace h5mirror::vfd {
namespace {

using ::testing::HasSubstr;

constexpr char kA[] = "dns:///node-a:7447";
constexpr char kB[] = "dns:///node-b:7447";
constexpr char kC[] = "dns:///node-c:7447";
constexpr absl::Duration kTimer = absl::Milliseconds(100);

absl::Status NobodyServes() { return rpc::NobodyServesError("it is being taken over"); }

class SessionTakeoverTest : public ::testing::Test {
 protected:
  SessionTakeoverTest()
      : directory_(std::filesystem::path(::testing::TempDir()) /
                   ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    SetAll(NobodyServes());
    host_.pass = [this] { Pass(); };
  }
  ~SessionTakeoverTest() override { std::filesystem::remove_all(directory_); }

  void Start(absl::Duration timeout, absl::Duration outage_wait = absl::ZeroDuration()) {
    SessionConfig config;
    config.real_path = directory_ / "run7.h5";
    config.name = "beam/run7.h5";
    config.facts.created = true;
    config.server.server = "node-a|node-b|node-c";
    config.server.target = kA;
    config.server.others = {{kB, false}, {kC, false}};
    config.timeout = timeout;
    config.outage_wait = outage_wait;
    session_ = Session::Start(host_, std::move(config), std::make_unique<FakeReader>(&reads_fail_));
    session_->Pump();
  }

  // As Start(), with one server that is in no cluster.
  void StartAlone() {
    SessionConfig config;
    config.real_path = directory_ / "run7.h5";
    config.name = "beam/run7.h5";
    config.facts.created = true;
    config.server.server = "node-a";
    config.server.target = kA;
    config.timeout = absl::Seconds(1);
    session_ = Session::Start(host_, std::move(config), std::make_unique<FakeReader>(&reads_fail_));
    session_->Pump();
  }

  // How each server ends a stream from now on. OK: it takes it, and acks each barrier.
  void SetAll(const absl::Status& status) { servers_ = {{kA, status}, {kB, status}, {kC, status}}; }

  // A tick of the timer and of the servers.
  void Pass() {
    for (size_t i = 0; i < host_.streams.size(); ++i) Serve(host_.streams[i]);
    session_->OnTimer();
    session_->Pump();
    host_.now += kTimer;
  }
  void PassFor(absl::Duration time) {
    for (const absl::Time end = host_.now + time; host_.now < end;) Pass();
  }

  void Serve(FakeStream& stream) {
    if (stream.owner == nullptr || stream.is_cancelled) return;
    const absl::Status& status = servers_.at(stream.target);
    if (!status.ok()) return stream.End(status);
    stream.Drain();
    if (!std::exchange(stream.is_taken, true)) {
      stream.Open(durable_seq_);
      stream.Drain();
    }
    if (stream.barriers.empty()) return;
    if (!at_barrier_.ok()) return stream.End(at_barrier_);
    durable_seq_ = stream.barriers.back();
    stream.barriers.clear();
    stream.AckDurable(durable_seq_);
  }

  void Write() { session_->AfterWrite({0, 4}, H5M_WRITE_RAW); }
  // A flush that does not wait for its ack.
  void Flush() { session_->Cut(CutKind::kSync, H5M_ACK_NONE, ""); }
  absl::Status Close() {
    session_->Seal();
    session_->AwaitSealed();
    session_->BeginClose();
    return session_->Close();
  }

  H5mStatus Status() {
    H5mStatus status;
    session_->Status(&status);
    return status;
  }

  const std::filesystem::path directory_;
  std::map<std::string, absl::Status> servers_;
  absl::Status at_barrier_;  // ends the stream of a server that takes it
  bool reads_fail_ = false;  // those of the local file
  uint64_t durable_seq_ = 0;
  FakeHost host_;
  std::shared_ptr<Session> session_;
};

TEST_F(SessionTakeoverTest, AFileThatIsOpenedInATakeoverCatchesUpByItself) {
  Start(absl::Seconds(1));
  Write();
  Flush();
  PassFor(absl::Seconds(8));
  EXPECT_EQ(Status().state, H5M_STATE_BEHIND);
  servers_[kB] = absl::OkStatus();  // The program makes no more calls.
  PassFor(absl::Seconds(1));
  EXPECT_EQ(Status().state, H5M_STATE_MIRRORING);
  EXPECT_GT(Status().cut, 0);
  EXPECT_EQ(Status().pending_bytes, 0u);
}

TEST_F(SessionTakeoverTest, SoItDoesWhereAllServersWereAwayAtFirst) {
  SetAll(absl::UnavailableError("Connection refused"));
  Start(absl::Seconds(1));
  Write();
  Flush();
  PassFor(absl::Minutes(1));
  const size_t attempts = host_.streams.size();
  PassFor(absl::Minutes(1));
  EXPECT_EQ(Status().state, H5M_STATE_BEHIND);
  EXPECT_LE(host_.streams.size() - attempts, 90u) << "three in 2 s";
  servers_[kC] = absl::OkStatus();
  PassFor(absl::Seconds(8));
  EXPECT_EQ(Status().state, H5M_STATE_MIRRORING);
}

TEST_F(SessionTakeoverTest, AndWhereTheOnlyServerWasAwayAtFirst) {
  for (const char* away : {"Connection refused", "Network is unreachable"}) {
    SetAll(absl::UnavailableError(away));
    StartAlone();
    Write();
    Flush();
    PassFor(absl::Minutes(1));
    const size_t attempts = host_.streams.size();
    PassFor(absl::Minutes(1));
    EXPECT_EQ(Status().state, H5M_STATE_BEHIND);
    EXPECT_LE(host_.streams.size() - attempts, 5u) << "one in 15 s";
    servers_[kA] = absl::OkStatus();  // The program makes no more calls.
    PassFor(Link::kRestMax + absl::Seconds(1));
    EXPECT_EQ(Status().state, H5M_STATE_MIRRORING);
    EXPECT_GT(Status().cut, 0);
    EXPECT_EQ(Status().pending_bytes, 0u);
    EXPECT_EQ(Close(), absl::OkStatus());
    durable_seq_ = 0;
    session_.reset();
    host_.streams.clear();  // They name the session.
  }
}

TEST_F(SessionTakeoverTest, AFlushAsksAtOnceForAServerThatWasNeverThere) {
  SetAll(absl::UnavailableError("Connection refused"));
  StartAlone();
  Write();
  Flush();
  PassFor(absl::Minutes(1));
  servers_[kA] = absl::OkStatus();
  Write();
  Flush();
  PassFor(absl::Seconds(1));
  EXPECT_EQ(Status().state, H5M_STATE_MIRRORING);
}

TEST_F(SessionTakeoverTest, WhereTheProcessTalksToNobodyNoOtherIsAskedAndNoCallWaits) {
  SetAll(absl::OkStatus());
  Start(absl::Seconds(30));
  Write();
  Flush();
  const size_t attempts = host_.streams.size();
  const absl::Time before = host_.now;
  session_->Abandon("its descriptors are gone");
  EXPECT_EQ(Status().state, H5M_STATE_BEHIND);
  Flush();
  EXPECT_FALSE(session_->AwaitCut());
  EXPECT_THAT(std::string(Close().message()), HasSubstr("its descriptors are gone"));
  EXPECT_EQ(host_.now, before);
  EXPECT_TRUE(session_->gone());
  EXPECT_EQ(host_.streams.size(), attempts);
}

TEST_F(SessionTakeoverTest, NorIsATakeoverAwaitedThen) {
  Start(absl::Seconds(1));
  Write();
  EXPECT_FALSE(Close().ok());
  EXPECT_FALSE(session_->done());
  session_->Abandon("its descriptors are gone");
  EXPECT_TRUE(session_->gone());
}

// Else it would take the file from that writer's hands as soon as it has closed it.
TEST_F(SessionTakeoverTest, ButNotWhereAnotherWriterHadTheFile) {
  StartAlone();
  Write();
  Flush();
  FakeStream& stream = host_.streams.back();
  stream.Drain();
  stream.OpenBusy("node-z");
  stream.End(absl::FailedPreconditionError("node-z"));
  SetAll(absl::OkStatus());
  PassFor(absl::Seconds(10));
  EXPECT_EQ(host_.streams.size(), 1u);
  EXPECT_EQ(Status().state, H5M_STATE_BEHIND);
}

TEST_F(SessionTakeoverTest, ACloseIsDurableWithinItsTime) {
  SetAll(absl::OkStatus());
  Start(absl::Seconds(30));
  Write();
  Flush();
  PassFor(absl::Seconds(1));
  ASSERT_EQ(Status().state, H5M_STATE_MIRRORING);
  SetAll(NobodyServes());
  Write();
  const absl::Time lost_at = host_.now;
  host_.pass = [&] {
    if (host_.now - lost_at > absl::Seconds(7)) servers_[kB] = absl::OkStatus();
    Pass();
  };
  EXPECT_EQ(Close(), absl::OkStatus());
  EXPECT_LT(host_.now - lost_at, absl::Seconds(8));
  EXPECT_EQ(Status().state, H5M_STATE_CLEAN);
}

TEST_F(SessionTakeoverTest, ACloseOfAFileThatNoServerHasTakenYetIsDurableWithinItsTime) {
  Start(absl::Seconds(30));
  Write();
  const absl::Time opened_at = host_.now;
  host_.pass = [&] {
    if (host_.now - opened_at > absl::Seconds(7)) servers_[kC] = absl::OkStatus();
    Pass();
  };
  EXPECT_EQ(Close(), absl::OkStatus());
  EXPECT_EQ(Status().state, H5M_STATE_CLEAN);
}

TEST_F(SessionTakeoverTest, ACloseWaitsNoLongerThanItsTimeAndComesLaterWhileTheProgramLives) {
  SetAll(absl::OkStatus());
  Start(absl::Seconds(1));
  Write();
  Flush();
  PassFor(absl::Seconds(1));
  SetAll(NobodyServes());
  Write();
  const absl::Time closed_at = host_.now;
  EXPECT_THAT(Close().message(), HasSubstr("behind"));
  EXPECT_LT(host_.now - closed_at, absl::Seconds(2));
  PassFor(absl::Seconds(5));
  ASSERT_FALSE(session_->done());
  servers_[kC] = absl::OkStatus();
  PassFor(absl::Seconds(1));
  EXPECT_TRUE(session_->done());
  EXPECT_EQ(Status().state, H5M_STATE_CLEAN);
}

TEST_F(SessionTakeoverTest, AProgramThatLivesOnGivesItUpInTheEnd) {
  Start(absl::Seconds(1));
  Write();
  EXPECT_FALSE(Close().ok());
  PassFor(absl::Seconds(40));
  EXPECT_TRUE(session_->done());
  EXPECT_EQ(Status().state, H5M_STATE_BEHIND);
}

TEST_F(SessionTakeoverTest, AProgramThatWaitsOutagesOutHasItsCloseDurable) {
  Start(absl::Seconds(1), absl::Seconds(20));
  Write();
  const absl::Time opened_at = host_.now;
  host_.pass = [&] {
    if (host_.now - opened_at > absl::Seconds(12)) servers_[kB] = absl::OkStatus();
    Pass();
  };
  EXPECT_EQ(Close(), absl::OkStatus());
  EXPECT_LT(host_.now - opened_at, absl::Seconds(14));
}

TEST_F(SessionTakeoverTest, ACloseInALongOutageWaitsForNoTakeover) {
  SetAll(absl::OkStatus());
  Start(absl::Seconds(30));
  Write();
  Flush();
  PassFor(absl::Seconds(1));
  ASSERT_EQ(Status().state, H5M_STATE_MIRRORING);
  for (const absl::Status& away : {absl::UnavailableError("Connection refused"), NobodyServes()}) {
    SetAll(away);
    Write();
    Flush();
    PassFor(absl::Seconds(40));
    ASSERT_EQ(Status().state, H5M_STATE_BEHIND);
  }
  const absl::Time closed_at = host_.now;
  const size_t attempts = host_.streams.size();
  EXPECT_FALSE(Close().ok());
  EXPECT_LE(host_.now - closed_at, absl::Seconds(3));
  EXPECT_LE(host_.streams.size() - attempts, 9u);
}

TEST_F(SessionTakeoverTest, AServerOfAnotherClusterDoesNotEndASession) {
  SetAll(absl::OkStatus());
  Start(absl::Seconds(1));
  Write();
  Flush();
  PassFor(absl::Seconds(1));
  for (const absl::Status& foreign :
       {absl::NotFoundError("no such file, or no right to it"),
        absl::UnauthenticatedError("the token is not known here"),
        absl::FailedPreconditionError("this server has another root")}) {
    servers_ = {
        {kA, absl::UnavailableError("Connection refused")}, {kB, foreign}, {kC, NobodyServes()}};
    Write();
    Flush();
    PassFor(absl::Seconds(5));
    EXPECT_EQ(Status().state, H5M_STATE_BEHIND) << foreign;
    servers_[kC] = absl::OkStatus();
    PassFor(absl::Seconds(1));
    EXPECT_EQ(Status().state, H5M_STATE_MIRRORING) << foreign;
  }
}

TEST_F(SessionTakeoverTest, NorDoesItWhereItIsTheFirstThatIsAsked) {
  servers_[kA] = absl::NotFoundError("no such file, or no right to it");
  servers_[kB] = absl::OkStatus();
  Start(absl::Seconds(1));
  Write();
  Flush();
  PassFor(absl::Seconds(1));
  EXPECT_EQ(Status().state, H5M_STATE_MIRRORING);
}

TEST_F(SessionTakeoverTest, AnotherWriterOfTheFileIsNoServerOfAnotherCluster) {
  Start(absl::Seconds(1));
  FakeStream& stream = host_.streams.back();
  ASSERT_EQ(stream.target, kA);
  stream.Drain();
  stream.OpenBusy("node-z");
  stream.End(absl::FailedPreconditionError("node-z"));
  EXPECT_THAT(Status().message, HasSubstr("another writer holds it: node-z"));
  Write();
  Flush();
  PassFor(absl::Seconds(1));
  ASSERT_GE(host_.streams.size(), 2u);
  EXPECT_EQ(host_.streams[1].target, kA);
}

TEST_F(SessionTakeoverTest, ARefusalByTheServerThatHasTakenTheStreamCounts) {
  SetAll(absl::OkStatus());
  at_barrier_ = absl::InvalidArgumentError("barrier.size_bytes is invalid");
  Start(absl::Seconds(1));
  Write();
  Flush();
  PassFor(absl::Seconds(10));
  EXPECT_EQ(host_.streams.size(), 1u);
  EXPECT_EQ(Status().state, H5M_STATE_BEHIND);
  EXPECT_THAT(Status().message, HasSubstr("barrier.size_bytes is invalid"));
}

TEST_F(SessionTakeoverTest, AllServersSeeATokenThatComesLater) {
  SetAll(absl::UnauthenticatedError("the token has expired"));
  Start(absl::Seconds(1));
  Write();
  Flush();
  PassFor(absl::Seconds(5));
  ASSERT_EQ(host_.streams.size(), 3u);
  servers_[kC] = absl::OkStatus();
  host_.newest_token = "another one";
  PassFor(absl::Seconds(2));
  EXPECT_EQ(Status().state, H5M_STATE_MIRRORING);
}

TEST_F(SessionTakeoverTest, ServersThatWereAwayBeforeARefusalAreAskedAgain) {
  SetAll(absl::UnavailableError("Network is unreachable"));
  Start(absl::Seconds(1));
  Write();
  Flush();
  PassFor(absl::Seconds(5));
  while (host_.streams.back().owner == nullptr) Pass();
  SetAll(absl::OkStatus());
  servers_[host_.streams.back().target] = absl::PermissionDeniedError("no right to write");
  PassFor(absl::Seconds(5));
  EXPECT_EQ(Status().state, H5M_STATE_MIRRORING);
}

TEST_F(SessionTakeoverTest, ALocalFileThatCannotBeReadIsNoFailureOfTheServer) {
  SetAll(absl::OkStatus());
  Start(absl::Seconds(1));
  Write();
  Flush();
  PassFor(absl::Seconds(1));
  reads_fail_ = true;
  Write();
  Flush();
  PassFor(absl::Milliseconds(300));
  EXPECT_EQ(Status().state, H5M_STATE_BEHIND);
  reads_fail_ = false;
  Write();
  Flush();
  PassFor(absl::Seconds(2));
  EXPECT_EQ(Status().state, H5M_STATE_MIRRORING);
  for (const FakeStream& stream : host_.streams) EXPECT_EQ(stream.target, kA);
}

TEST_F(SessionTakeoverTest, ARefusalByAllServersCounts) {
  SetAll(absl::PermissionDeniedError("no right to write"));
  Start(absl::Seconds(1));
  Write();
  Flush();
  PassFor(absl::Seconds(10));
  EXPECT_EQ(host_.streams.size(), 3u);
  EXPECT_EQ(Status().state, H5M_STATE_BEHIND);
  EXPECT_THAT(Status().message, HasSubstr("no right to write"));
}

TEST_F(SessionTakeoverTest, ARefusalByAllThatAnswerCountsForAFileThatNoneHasTaken) {
  SetAll(absl::PermissionDeniedError("no right to write"));
  servers_[kB] = absl::UnavailableError("Connection refused");
  Start(absl::Seconds(1));
  Write();
  Flush();
  PassFor(absl::Seconds(10));
  EXPECT_LE(host_.streams.size(), 4u);
}

}  // namespace
}  // namespace h5mirror::vfd
