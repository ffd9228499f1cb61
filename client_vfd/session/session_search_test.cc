// Where a session's stream goes when its server is silent, by the answers of other servers.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client_vfd/session/session.h"
#include "client_vfd/session/testing/fake_host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/elsewhere.h"

namespace h5mirror::vfd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kA[] = "dns:///node-a:7447";
constexpr char kB[] = "dns:///node-b:7447";
constexpr char kC[] = "dns:///node-c:7447";
constexpr absl::Duration kTimer = absl::Milliseconds(100);
class SessionSearchTest : public ::testing::Test {
 protected:
  SessionSearchTest() {
    SessionConfig config;
    config.real_path = "/nowhere/run7.h5";
    config.name = "beam/run7.h5";
    config.remote = RemoteClaim();  // It leaves no record beside the file.
    config.server.server = "node-a|node-b|node-c";
    config.server.target = kA;
    config.server.others = {{kB, false}, {kC, false}};
    config.timeout = absl::Minutes(5);
    config.linger = absl::Minutes(5);
    session_ = Session::Start(host_, std::move(config), std::make_unique<FakeReader>());
    session_->Pump();
  }

  FakeStream& stream() { return host_.streams.back(); }
  // The server takes the stream and owes an answer to a barrier.
  void Owe() {
    stream().Open();
    stream().Drain();
    session_->AfterWrite({0, 4}, H5M_WRITE_RAW);
    session_->Cut(CutKind::kSync, H5M_ACK_NONE, "");
    session_->Pump();
    stream().Drain();
  }
  // A tick of the timer; reports that it sends are taken.
  void Pass() {
    session_->OnTimer();
    if (stream().is_writing) stream().Drain();
    host_.now += kTimer;
    session_->OnTimer();
  }
  // Passes until there is a question, and answers it. Returns the server that was asked; "": none
  // was, within `longest`.
  std::string AnswerNext(const ServerAnswer& answer, absl::Duration longest = absl::Seconds(6)) {
    for (absl::Duration passed; host_.questions.empty() && passed < longest; passed += kTimer) {
      Pass();
    }
    if (host_.questions.empty()) return "";
    const Question question = std::move(host_.questions.front());
    host_.questions.pop_front();
    question.answered(answer);
    session_->Pump();
    return question.target;
  }
  // Answers questions so, until the stream moves or many were asked.
  void AnswerBy(const std::map<std::string, ServerAnswer>& answers) {
    constexpr int kQuestions = 12;
    const size_t streams = host_.streams.size();
    for (int i = 0; i < kQuestions && host_.streams.size() == streams; ++i) {
      for (int ticks = 0; host_.questions.empty() && ticks < 100; ++ticks) Pass();
      ASSERT_FALSE(host_.questions.empty());
      AnswerNext(answers.at(host_.questions.front().target));
    }
  }
  std::vector<std::string> Targets() const {
    std::vector<std::string> targets;
    for (const FakeStream& stream : host_.streams) targets.push_back(stream.target);
    return targets;
  }

  FakeHost host_;
  std::shared_ptr<Session> session_;
};

ServerAnswer Answer(absl::Status status) {
  return {std::move(status), "ipv4:10.0.0.9:7447", 0, ""};
}

ServerAnswer Has(const Bytes16& file_id) {
  ServerAnswer answer = Answer(absl::OkStatus());
  answer.file_id = ToByteString(file_id);
  return answer;
}

ServerAnswer OwnerLacks() {
  return Answer(rpc::OwnerLacksIt(absl::NotFoundError("no file"), "beam", 3));
}

TEST_F(SessionSearchTest, AnOpenStreamMovesToTheServerThatHasTheFile) {
  Owe();
  const std::string asked = AnswerNext(Has(kFakeFileId));
  EXPECT_NE(asked, kA);
  EXPECT_THAT(Targets(), ElementsAre(kA, asked));
  EXPECT_TRUE(host_.streams.front().is_cancelled);
  EXPECT_EQ(host_.streams.front().owner, nullptr);
}

TEST_F(SessionSearchTest, OtherSessionsHearOfAServerThatIsSilentBeforeAnotherHasTheFile) {
  Owe();
  EXPECT_NE(AnswerNext(Answer(rpc::NobodyServesError("it is being taken over"))), "");
  EXPECT_THAT(host_.doubtful, ElementsAre(kA));
  EXPECT_THAT(Targets(), ElementsAre(kA)) << "the stream stays";
}

TEST_F(SessionSearchTest, AServerThatOnlyIsSlowIsInNoDoubt) {
  Owe();
  const ServerAnswer same = Answer(rpc::ElsewhereError({"node-a:7447", "beam", 2}));
  EXPECT_NE(AnswerNext(same), "");
  EXPECT_THAT(host_.doubtful, IsEmpty());
}

TEST_F(SessionSearchTest, AServerInDoubtIsNotWaitedForForLong) {
  host_.SetDoubtful(kA);
  Owe();
  const std::string asked = AnswerNext(Has(kFakeFileId), absl::Seconds(1));
  EXPECT_THAT(Targets(), ElementsAre(kA, asked));
}

TEST_F(SessionSearchTest, AStreamThatIsNotTakenMovesToo) {
  const std::string asked = AnswerNext(Has(kFakeFileId), absl::Seconds(1));
  EXPECT_THAT(Targets(), ElementsAre(kA, asked));
}

TEST_F(SessionSearchTest, AServerThatOwesNothingIsNotLeft) {
  stream().Open();
  stream().Drain();
  EXPECT_EQ(AnswerNext(Has(kFakeFileId), absl::Minutes(1)), "");
}

TEST_F(SessionSearchTest, ANameMoreOfTheSameServerIsNoOtherServer) {
  Owe();
  ServerAnswer by_lease = Has(kFakeFileId);
  by_lease.lease_token = kFakeLease;
  EXPECT_NE(AnswerNext(by_lease), "");
  stream().peer = "ipv4:10.0.0.9:7447";
  EXPECT_NE(AnswerNext(Has(kFakeFileId)), "") << "the address of both connections";
  EXPECT_THAT(Targets(), ElementsAre(kA));
}

TEST_F(SessionSearchTest, AServerThatGivesNoRightIsNotMovedTo) {
  Owe();
  for (int i = 0; i < OwnerSearch::kRefusalsMax; ++i) {
    EXPECT_NE(AnswerNext(Answer(absl::NotFoundError("no such file, or no right to it"))), "");
  }
  EXPECT_THAT(Targets(), ElementsAre(kA));
  EXPECT_FALSE(host_.streams.front().is_cancelled);
  EXPECT_EQ(AnswerNext(Has(kFakeFileId), absl::Minutes(1)), "") << "no more questions";
}

TEST_F(SessionSearchTest, AStreamThatIsNotTakenIsNotLeftForSuchAServerEither) {
  EXPECT_NE(AnswerNext(Answer(absl::NotFoundError("no right"))), "");
  EXPECT_THAT(Targets(), ElementsAre(kA));
}

TEST_F(SessionSearchTest, AFileOfWhichNothingIsDurableIsMadeByItsNewOwner) {
  Owe();
  AnswerBy({{kB, OwnerLacks()}, {kC, Answer(rpc::ElsewhereError({"node-b:7447", "beam", 3}))}});
  EXPECT_THAT(Targets(), ElementsAre(kA, kB));
}

TEST_F(SessionSearchTest, SoItIsWhereTheOthersOfTheListAreSilent) {
  Owe();
  AnswerBy({{kB, Answer(absl::DeadlineExceededError("1 s"))}, {kC, OwnerLacks()}});
  EXPECT_THAT(Targets(), ElementsAre(kA, kC));
}

TEST_F(SessionSearchTest, NoServerThatLacksTheFileIsBelievedWhileOthersKnowMore) {
  Owe();
  const ServerAnswer waits = Answer(rpc::NobodyServesError("it is being taken over"));
  AnswerBy({{kB, waits}, {kC, OwnerLacks()}});
  EXPECT_THAT(Targets(), ElementsAre(kA));
  AnswerBy({{kB, Answer(rpc::ElsewhereError({"node-a:7447", "beam", 2}))}, {kC, OwnerLacks()}});
  EXPECT_THAT(Targets(), ElementsAre(kA)) << "of another cluster: the file's own server is slow";
  AnswerBy({{kB, OwnerLacks()}, {kC, OwnerLacks()}});
  EXPECT_THAT(Targets(), ElementsAre(kA)) << "of two owners one is of another cluster";
  AnswerBy({{kB, Has(kFakeFileId)}, {kC, OwnerLacks()}});
  EXPECT_THAT(Targets(), ElementsAre(kA, kB));
}

TEST_F(SessionSearchTest, AnOwnerThatLacksADurableFileIsOfAnotherCluster) {
  Owe();
  stream().AckDurable(1);
  session_->AfterWrite({4, 4}, H5M_WRITE_RAW);
  session_->Cut(CutKind::kSync, H5M_ACK_NONE, "");
  session_->Pump();
  stream().Drain();
  EXPECT_NE(AnswerNext(OwnerLacks()), "");
  EXPECT_THAT(Targets(), ElementsAre(kA));
}

TEST_F(SessionSearchTest, SoItIsWhereTheFileBecomesDurableBeforeTheOthersWereHeard) {
  Owe();
  EXPECT_NE(AnswerNext(OwnerLacks()), "");
  session_->AfterWrite({4, 4}, H5M_WRITE_RAW);
  session_->Cut(CutKind::kSync, H5M_ACK_NONE, "");
  session_->Pump();
  stream().Drain();
  stream().AckDurable(1);  // Of two barriers.
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(AnswerNext(Answer(absl::DeadlineExceededError("1 s")), absl::Seconds(10)), "");
  }
  EXPECT_THAT(Targets(), ElementsAre(kA));
}

TEST_F(SessionSearchTest, AnotherFileOfThatNameIsNotMovedTo) {
  Owe();
  EXPECT_NE(AnswerNext(Has({9, 9})), "");
  EXPECT_THAT(Targets(), ElementsAre(kA));
}

TEST_F(SessionSearchTest, AServerThatIsNamedIsAskedItself) {
  Owe();
  EXPECT_NE(AnswerNext(Answer(rpc::ElsewhereError({"node-d:7447", "beam", 4}))), "");
  EXPECT_EQ(AnswerNext(Has(kFakeFileId)), "dns:///node-d:7447");
  EXPECT_THAT(Targets(), ElementsAre(kA, "dns:///node-d:7447"));
}

// The program may flush once, and then compute for hours.
TEST_F(SessionSearchTest, AFlushBeforeAnotherServerIsNamedGoesThereAtOnce) {
  session_->AfterWrite({0, 4}, H5M_WRITE_RAW);
  session_->Cut(CutKind::kTick, H5M_ACK_NONE, "");
  session_->Pump();
  stream().Drain();
  stream().owner->OnEnded(rpc::ElsewhereError({"node-d:7447", "beam", 4}));
  session_->Pump();
  ASSERT_THAT(Targets(), ElementsAre(kA, "dns:///node-d:7447"));
  stream().Drain();
  stream().Open();
  ASSERT_FALSE(stream().is_writing);
  session_->Pump();
  EXPECT_TRUE(stream().is_writing) << "the cut";
}

TEST_F(SessionSearchTest, AConnectionThatMayStillComeAboutIsKept) {
  Owe();
  EXPECT_NE(AnswerNext(Answer(absl::DeadlineExceededError("1 s"))), "");
  EXPECT_NE(AnswerNext(Answer(rpc::NobodyServesError("it is being taken over"))), "");
  EXPECT_THAT(host_.dropped, IsEmpty());
  const std::string refused = AnswerNext(Answer(absl::UnavailableError("Connection refused")));
  EXPECT_THAT(host_.dropped, ElementsAre(refused));
}

TEST_F(SessionSearchTest, AnOpeningThatIsSlowIsRestartedLessOften) {
  // Two networks of one server, and it takes 2 s for an opening.
  const absl::Time start = host_.now;
  for (absl::Time begun = start; host_.now - begun < absl::Seconds(2);) {
    const size_t streams = host_.streams.size();
    AnswerNext(Has(kFakeFileId), kTimer);
    if (host_.streams.size() > streams) begun = host_.now;
    ASSERT_LT(host_.now - start, absl::Minutes(1));
  }
  EXPECT_LE(host_.streams.size(), 5u);
}

}  // namespace
}  // namespace h5mirror::vfd
