#include "server/mirror/session.h"
#include "base/testing/fake_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hex.h"
#include "server/testing/fake_store.h"

namespace h5mirror::server {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One client's end: what the session sent to it, and how it ended.
class Client final : public SessionOutput {
 public:
  Client(const SessionEnvironment& environment, uint8_t id)
      : id_(id), session_(Session::Create(environment, {"token", Rights::All()}, "peer", *this)) {}
  ~Client() override { session_->Detach(); }

  void Send(v1::MirrorFileResponse response) override { answers_.push_back(std::move(response)); }
  void Finish(const absl::Status& status) override {
    if (!end_.has_value()) end_ = status;
  }
  absl::Status Require(const Need& /*need*/, std::string /*claimed*/) override {
    return absl::OkStatus();
  }

  // `schedule_` holds more of what it asks for.
  void Open(v1::Intent intent, int64_t base_cut = 0, const std::string& name = "x.h5") {
    v1::MirrorFileRequest request;
    v1::OpenSession& open = *request.mutable_open();
    open = schedule_;
    open.mutable_protocol()->set_oldest(1);
    open.mutable_protocol()->set_newest(1);
    open.set_name(name);
    store::SessionId session_id{};
    session_id[0] = id_;
    open.set_session_id(ToByteString(session_id));
    open.set_intent(intent);
    open.set_base_cut(base_cut);
    open.mutable_origin()->set_path("/data/x.h5");
    open.mutable_writer()->set_claimed_user("alice");
    session_->OnRequest(request);
  }
  void Write(std::string_view data) {
    rpc::WritesView writes;
    writes.extents = {{0, data.size()}};
    writes.pieces = {data};
    writes.data_bytes = data.size();
    session_->OnRequest(writes);
  }
  // The commit of a close names the local file.
  void Close(uint64_t seq) {
    v1::MirrorFileRequest request;
    request.mutable_barrier()->set_seq(seq);
    request.mutable_barrier()->set_kind(v1::BARRIER_KIND_COMMIT);
    request.mutable_barrier()->mutable_local()->set_inode(7);
    session_->OnRequest(request);
  }
  void Barrier(uint64_t seq, v1::BarrierKind kind = v1::BARRIER_KIND_TICK) {
    v1::MirrorFileRequest request;
    request.mutable_barrier()->set_seq(seq);
    request.mutable_barrier()->set_kind(kind);
    session_->OnRequest(request);
  }
  const v1::SessionOpened& opened() const { return answers_.front().opened(); }
  absl::StatusCode code() const { return end_.has_value() ? end_->code() : absl::StatusCode(-1); }
  std::string message() const { return end_.has_value() ? std::string(end_->message()) : "open"; }

  const uint8_t id_;
  v1::OpenSession schedule_;
  std::vector<v1::MirrorFileResponse> answers_;
  std::optional<absl::Status> end_;
  std::shared_ptr<Session> session_;
};

class SessionTest : public ::testing::Test {
 protected:
  // Like the real store, the fake lets no caller wait for ever: a waiting caller holds session and
  // file.
  ~SessionTest() override {
    for (auto& [name, file] : store_.files_) {
      while (!file->waiting_.empty()) file->MakeDurable();
    }
  }
  FakeFile& file() { return *store_.files_.at("x.h5"); }

  FakeClock clock_;
  FakeStore store_;
  Metrics metrics_{1};
  LeaseTable leases_{clock_, absl::Seconds(10)};
  SessionMemory memory_;
  CommitBoard commits_;
  SessionEnvironment environment_{store_, leases_, clock_, metrics_, memory_, commits_, 4};
  Client alice_{environment_, 1};
  Client bob_{environment_, 2};
};

TEST_F(SessionTest, NewFileIsWrittenCutAndClosed) {
  alice_.Open(v1::INTENT_CREATE);
  ASSERT_EQ(alice_.answers_.size(), 1u);
  EXPECT_EQ(alice_.opened().relation(), v1::RELATION_NEW);
  EXPECT_EQ(alice_.opened().token(), 1u);
  alice_.Write("hello");
  alice_.Barrier(1, v1::BARRIER_KIND_COMMIT);
  ASSERT_EQ(alice_.answers_.size(), 2u);
  EXPECT_EQ(alice_.answers_[1].cut_visible().cut(), 10);
  file().MakeDurable();
  EXPECT_EQ(alice_.answers_.at(2).cut_durable().version(), 1);
  alice_.session_->OnHalfClose();
  EXPECT_EQ(alice_.code(), absl::StatusCode::kOk);
  EXPECT_EQ(file().written_, "hello");
  EXPECT_THAT(file().calls_, ElementsAre("acquire", "new", "end clean"));
}

TEST_F(SessionTest, HalfClosedStreamEndsWhenItsBarriersAreDurable) {
  alice_.Open(v1::INTENT_CREATE);
  alice_.Barrier(1);
  alice_.session_->OnHalfClose();
  EXPECT_FALSE(alice_.end_.has_value());
  EXPECT_FALSE(leases_.HolderOf("x.h5").has_value());
  file().MakeDurable();
  EXPECT_EQ(alice_.code(), absl::StatusCode::kOk);
}

TEST_F(SessionTest, BrokenStreamIsALostWriter) {
  alice_.Open(v1::INTENT_CREATE);
  alice_.session_->OnLost();
  EXPECT_THAT(file().calls_, Contains("end lost"));
  bob_.Open(v1::INTENT_CREATE);
  EXPECT_EQ(bob_.opened().relation(), v1::RELATION_NEW);
}

// Keeps the events that it is told.
class Told final : public EventSink {
 public:
  void Notify(Event event) override { events_.push_back(std::move(event)); }
  std::vector<Event> events_;
};

class SessionEventsTest : public SessionTest {
 protected:
  SessionEventsTest() {
    environment_.mirrors = &mirrors_;
    environment_.events = &told_;
  }
  MirrorStates mirrors_{clock_};
  Told told_;
};

TEST_F(SessionEventsTest, ALostWriterIsAnEventWithItsName) {
  Client carol(environment_, 3);
  carol.Open(v1::INTENT_CREATE);
  carol.Write("x");
  carol.session_->OnLost();
  ASSERT_EQ(told_.events_.size(), 1u);
  EXPECT_EQ(told_.events_[0].kind, EventKind::kWriterLost);
  EXPECT_EQ(told_.events_[0].file, "x.h5");
  EXPECT_THAT(told_.events_[0].text, HasSubstr("alice"));
}

TEST_F(SessionEventsTest, ABreakBehindACleanCloseIsNone) {
  Client carol(environment_, 3);
  carol.Open(v1::INTENT_CREATE);
  carol.Write("x");
  carol.Close(1);
  file().MakeDurable();
  carol.session_->OnLost();
  EXPECT_TRUE(told_.events_.empty());
}

TEST_F(SessionEventsTest, AStreamWhoseSessionGoesOnIsNone) {
  Client carol(environment_, 3);
  carol.Open(v1::INTENT_CREATE);
  carol.Barrier(1);
  file().MakeDurable();
  Client again(environment_, 3);
  again.Open(v1::INTENT_RESUME, 10);
  EXPECT_EQ(again.opened().relation(), v1::RELATION_MATCH);
  EXPECT_THAT(file().calls_, Contains("end lost"));
  EXPECT_TRUE(told_.events_.empty());
}

TEST_F(SessionEventsTest, AServerThatStopsLosesNoWriter) {
  Client carol(environment_, 3);
  carol.Open(v1::INTENT_CREATE);
  carol.Write("x");
  carol.session_->OnStop();
  EXPECT_TRUE(told_.events_.empty());
}

TEST_F(SessionEventsTest, ADivergedFileIsToldOnce) {
  ASSERT_TRUE(store_.OpenOrCreateFile("x.h5", 0).ok());
  file().info_.last_cut = 40;
  file().info_.origin.path = "/data/x.h5";
  for (uint8_t id = 3; id < 6; ++id) {
    Client carol(environment_, id);
    carol.Open(v1::INTENT_CONTINUE, 30);
    EXPECT_EQ(carol.opened().relation(), v1::RELATION_DIVERGED);
  }
  ASSERT_EQ(told_.events_.size(), 1u);
  EXPECT_EQ(told_.events_[0].kind, EventKind::kDiverged);
  EXPECT_THAT(told_.events_[0].numbers, ElementsAre(std::pair("last_cut", 40)));
}

TEST_F(SessionTest, AFileThatItsProgramGaveUpInTheMiddleIsALostWriters) {
  alice_.Open(v1::INTENT_CREATE);
  alice_.Barrier(1);
  v1::MirrorFileRequest request;
  request.mutable_keep_alive()->mutable_mirror()->set_state(v1::MIRROR_STATE_DEGRADED);
  alice_.session_->OnRequest(request);
  alice_.session_->OnHalfClose();
  EXPECT_THAT(file().calls_, Contains("end lost"));
  file().MakeDurable();
  EXPECT_EQ(alice_.code(), absl::StatusCode::kOk);
}

TEST_F(SessionTest, ALateDuplicateOfAStreamTakesNothing) {
  alice_.schedule_.set_stream(2);
  alice_.Open(v1::INTENT_CREATE);
  for (const uint64_t stream : {1, 2}) {
    Client duplicate(environment_, 1);
    duplicate.schedule_.set_stream(stream);
    duplicate.Open(v1::INTENT_CREATE);
    EXPECT_EQ(duplicate.code(), absl::StatusCode::kAborted);
    EXPECT_THAT(duplicate.message(), HasSubstr("late duplicate"));
  }
  EXPECT_FALSE(alice_.end_.has_value());
  EXPECT_THAT(file().calls_, ElementsAre("acquire", "new"));
  Client next(environment_, 1);
  next.schedule_.set_stream(3);
  next.Open(v1::INTENT_CREATE);
  EXPECT_EQ(next.opened().relation(), v1::RELATION_NEW);
  EXPECT_EQ(alice_.code(), absl::StatusCode::kAborted);
}

TEST_F(SessionTest, SecondWriterIsToldWhoWrites) {
  alice_.Open(v1::INTENT_CREATE);
  bob_.Open(v1::INTENT_CREATE);
  EXPECT_EQ(bob_.opened().relation(), v1::RELATION_BUSY);
  EXPECT_THAT(bob_.opened().state(), HasSubstr("alice"));
  EXPECT_EQ(bob_.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(alice_.end_.has_value());
}

TEST_F(SessionTest, DivergedFileIsLeftAlone) {
  ASSERT_TRUE(store_.OpenOrCreateFile("x.h5", 0).ok());
  file().info_.last_cut = 40;
  alice_.Open(v1::INTENT_UPLOAD);
  EXPECT_EQ(alice_.opened().relation(), v1::RELATION_DIVERGED);
  EXPECT_EQ(alice_.opened().last_cut(), 40);
  EXPECT_EQ(alice_.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(file().calls_.empty());
  EXPECT_FALSE(leases_.HolderOf("x.h5").has_value());
}

TEST_F(SessionTest, FileThatTheServerLostHasDiverged) {
  alice_.Open(v1::INTENT_CONTINUE, 40);
  EXPECT_EQ(alice_.opened().relation(), v1::RELATION_DIVERGED);
  EXPECT_THAT(alice_.opened().state(), HasSubstr("no such file"));
}

TEST_F(SessionTest, MessagesOutOfOrderEndOnlyTheirStream) {
  alice_.Open(v1::INTENT_CREATE);
  bob_.Write("early");
  EXPECT_EQ(bob_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(bob_.message(), HasSubstr("open"));
  EXPECT_FALSE(alice_.end_.has_value());
  alice_.Open(v1::INTENT_CREATE);
  EXPECT_THAT(alice_.message(), HasSubstr("second"));
}

TEST_F(SessionTest, BarrierNumbersOnlyGrow) {
  alice_.Open(v1::INTENT_CREATE);
  alice_.Barrier(2);
  alice_.Barrier(2);
  EXPECT_EQ(alice_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(alice_.message(), HasSubstr("barrier.seq 2"));
}

TEST_F(SessionTest, BadNamesAndIdsAreNamed) {
  alice_.Open(v1::INTENT_CREATE, 0, "../x.h5");
  EXPECT_EQ(alice_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(alice_.message(), HasSubstr("../x.h5"));
  EXPECT_TRUE(store_.files_.empty());
}

TEST_F(SessionTest, FullDiskEndsTheSessionWithItsStatus) {
  alice_.Open(v1::INTENT_CREATE);
  file().error_ = absl::ResourceExhaustedError("disk full");
  alice_.Write("x");
  EXPECT_EQ(alice_.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(file().calls_, Contains("end lost"));
}

TEST_F(SessionTest, CutThatCannotBecomeDurableEndsTheSession) {
  alice_.Open(v1::INTENT_CREATE);
  alice_.Barrier(1, v1::BARRIER_KIND_SYNC);
  file().MakeDurable(absl::ResourceExhaustedError("disk full"));
  EXPECT_EQ(alice_.code(), absl::StatusCode::kResourceExhausted);
  alice_.session_->OnLost();  // As the stream does when it has ended.
  EXPECT_THAT(file().calls_, Contains("end lost"));
}

TEST_F(SessionTest, StopFinishesBarriersAndIsNoLostWriter) {
  alice_.Open(v1::INTENT_CREATE);
  alice_.Barrier(1);
  alice_.session_->OnStop();
  EXPECT_FALSE(alice_.end_.has_value());
  file().MakeDurable();
  EXPECT_EQ(alice_.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(file().calls_, Contains("end clean"));
}

TEST_F(SessionTest, SilentWriterLosesItsLease) {
  alice_.Open(v1::INTENT_CREATE);
  clock_.Advance(absl::Seconds(11));
  EXPECT_EQ(leases_.RevokeExpired(), 1);
  EXPECT_EQ(alice_.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(file().calls_, Contains("end lost"));
}

TEST_F(SessionTest, AStreamThatIsHeldBackKeepsItsLeaseAndIsGivenSignsOfLife) {
  alice_.Open(v1::INTENT_CREATE);
  alice_.session_->SetHeldBack(true);
  for (size_t round = 1; round <= 3; ++round) {
    clock_.Advance(absl::Seconds(9));
    alice_.session_->OnTimer();
    alice_.session_->OnTimer();  // Too soon for another sign.
    EXPECT_EQ(alice_.answers_.size(), 1 + round);
    EXPECT_EQ(alice_.answers_.back().response_case(), v1::MirrorFileResponse::RESPONSE_NOT_SET);
  }
  EXPECT_EQ(leases_.RevokeExpired(), 0);
  alice_.session_->SetHeldBack(false);
  clock_.Advance(absl::Seconds(11));
  alice_.session_->OnTimer();
  EXPECT_EQ(alice_.answers_.size(), 4u);
  EXPECT_EQ(leases_.RevokeExpired(), 1);
}

TEST_F(SessionTest, WriterThatWaitsForItsCommitKeepsItsLease) {
  alice_.Open(v1::INTENT_CREATE);
  alice_.Barrier(1, v1::BARRIER_KIND_COMMIT);
  clock_.Advance(absl::Seconds(11));
  alice_.session_->OnTimer();
  EXPECT_EQ(leases_.RevokeExpired(), 0);
  file().MakeDurable();
  clock_.Advance(absl::Seconds(11));
  alice_.session_->OnTimer();
  EXPECT_EQ(leases_.RevokeExpired(), 1);
}

TEST_F(SessionTest, AnyRequestRenewsTheLease) {
  alice_.Open(v1::INTENT_CREATE);
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(absl::Seconds(9));
    v1::MirrorFileRequest request;
    request.mutable_keep_alive();
    alice_.session_->OnRequest(request);
  }
  EXPECT_EQ(leases_.RevokeExpired(), 0);
}

TEST_F(SessionTest, ResumedStreamFencesItsBrokenOneAndKnowsWhatSurvived) {
  alice_.Open(v1::INTENT_CREATE);
  alice_.Barrier(1);
  file().MakeDurable();
  alice_.Barrier(2);
  Client again(environment_, 1);
  again.Open(v1::INTENT_RESUME, 10);
  EXPECT_EQ(alice_.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(again.opened().relation(), v1::RELATION_MATCH);
  EXPECT_EQ(again.opened().last_barrier_seq(), 2u);
  EXPECT_EQ(again.opened().durable_barrier_seq(), 1u);
  EXPECT_GT(again.opened().token(), alice_.opened().token());
  file().MakeDurable();
  again.session_->OnTimer();
  ASSERT_EQ(again.answers_.size(), 2u);
  EXPECT_EQ(again.answers_[1].cut_durable().seq(), 2u);
  again.Barrier(2);
  EXPECT_EQ(again.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionTest, ResumedCreationOfWhichNothingSurvivedBeginsAgain) {
  ASSERT_TRUE(store_.OpenOrCreateFile("x.h5", 0).ok());
  file().info_.last_cut = file().info_.durable_cut = 40;
  file().info_.origin.path = "/data/x.h5";
  alice_.Open(v1::INTENT_CREATE);
  alice_.session_->OnLost();
  Client again(environment_, 1);
  again.Open(v1::INTENT_RESUME, 0);  // What it is to make has no base.
  EXPECT_EQ(again.opened().relation(), v1::RELATION_NEW);
}

TEST_F(SessionTest, StreamIsNotReadWhileTooManyBarriersWait) {
  alice_.Open(v1::INTENT_CREATE);
  for (uint64_t seq = 1; seq <= 4; ++seq) alice_.Barrier(seq);
  EXPECT_FALSE(alice_.session_->MayRead());
  clock_.Advance(absl::Seconds(11));
  alice_.session_->OnTimer();  // The server is the slow side: the lease stays.
  EXPECT_EQ(leases_.RevokeExpired(), 0);
  file().MakeDurable();
  EXPECT_TRUE(alice_.session_->MayRead());
}

TEST_F(SessionTest, StreamThatNeverOpensIsEnded) {
  clock_.Advance(absl::Seconds(31));
  alice_.session_->OnTimer();
  EXPECT_EQ(alice_.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(SessionTest, ProtocolsThatDoNotMeetNameBothRanges) {
  v1::MirrorFileRequest request;
  request.mutable_open()->mutable_protocol()->set_oldest(7);
  request.mutable_open()->mutable_protocol()->set_newest(9);
  alice_.session_->OnRequest(request);
  EXPECT_EQ(alice_.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(alice_.message(), HasSubstr("7..9"));
}

TEST_F(SessionTest, ARequestedVersionTakesTheNextCut) {
  alice_.Open(v1::INTENT_CREATE);
  alice_.Barrier(1);
  const auto asked = commits_.Post("x.h5", "token", "before the beam", {1});
  const auto also = commits_.Post("x.h5", "token", "two", {2});
  alice_.Barrier(2);
  EXPECT_EQ(file().last_request_.kind, store::BarrierKind::kCommit);
  EXPECT_EQ(file().last_request_.provenance.comment, "before the beam; two");
  EXPECT_EQ(file().last_request_.request_id->front(), 1);
  EXPECT_FALSE(commits_.TakeBack("x.h5", asked)) << "the cut has it";
  EXPECT_FALSE(asked->result().has_value());
  file().MakeDurable();
  file().MakeDurable();
  EXPECT_EQ((*asked->result())->version, 1);
  EXPECT_EQ((*also->result())->version, 1);
  alice_.Barrier(3);
  EXPECT_EQ(file().last_request_.kind, store::BarrierKind::kTick) << "once";
}

TEST_F(SessionTest, ARequestThatIsTakenBackMakesNothing) {
  alice_.Open(v1::INTENT_CREATE);
  const auto asked = commits_.Post("x.h5", "token", "late", {1});
  EXPECT_TRUE(commits_.TakeBack("x.h5", asked));
  EXPECT_FALSE(commits_.TakeBack("x.h5", asked));
  alice_.Barrier(1);
  EXPECT_EQ(file().last_request_.kind, store::BarrierKind::kTick);
}

TEST_F(SessionTest, ACutThatFailsTellsWhoAskedForAVersion) {
  alice_.Open(v1::INTENT_CREATE);
  const auto asked = commits_.Post("x.h5", "token", "", {1});
  alice_.Barrier(1);
  file().MakeDurable(absl::ResourceExhaustedError("disk full"));
  EXPECT_TRUE(absl::IsResourceExhausted(asked->result()->status()));
}

TEST_F(SessionTest, AFlushIsAVersionWhereOneIsDue) {
  alice_.schedule_.mutable_version_every()->set_seconds(600);
  alice_.Open(v1::INTENT_CREATE);
  auto kind_after = [this, seq = uint64_t{0}](absl::Duration later) mutable {
    clock_.Advance(later);
    alice_.Barrier(++seq);
    file().MakeDurable();
    return file().last_request_.kind;
  };
  EXPECT_EQ(kind_after(absl::ZeroDuration()), store::BarrierKind::kCommit) << "there is none yet";
  EXPECT_EQ(kind_after(absl::Minutes(9)), store::BarrierKind::kTick);
  EXPECT_EQ(kind_after(absl::Minutes(1)), store::BarrierKind::kCommit);
  EXPECT_EQ(kind_after(absl::Minutes(9)), store::BarrierKind::kTick);
}

TEST_F(SessionTest, WhileAVersionIsNotDurableYetFlushesAreNone) {
  alice_.schedule_.mutable_version_every()->set_seconds(600);
  alice_.Open(v1::INTENT_CREATE);
  auto kind_after = [this, seq = uint64_t{0}](absl::Duration later) mutable {
    clock_.Advance(later);
    alice_.Barrier(++seq);
    return file().last_request_.kind;
  };
  EXPECT_EQ(kind_after(absl::ZeroDuration()), store::BarrierKind::kCommit);
  EXPECT_EQ(kind_after(absl::Seconds(1)), store::BarrierKind::kTick);
  EXPECT_EQ(kind_after(absl::Minutes(9)), store::BarrierKind::kTick);
  EXPECT_EQ(kind_after(absl::Minutes(1)), store::BarrierKind::kCommit) << "as long after that cut";
  file().MakeDurable();
  file().MakeDurable();
  EXPECT_EQ(kind_after(absl::Minutes(9)), store::BarrierKind::kTick);
}

TEST_F(SessionTest, AfterAFlushThatChangedNothingTheNextOneIsDue) {
  alice_.schedule_.mutable_version_every()->set_seconds(600);
  alice_.Open(v1::INTENT_CREATE);
  alice_.Barrier(1);
  file().MakeDurable();
  clock_.Advance(absl::Minutes(10));
  alice_.Barrier(2);
  EXPECT_EQ(file().last_request_.kind, store::BarrierKind::kCommit);
  file().MakeUnchanged();
  clock_.Advance(absl::Seconds(1));
  alice_.Barrier(3);
  EXPECT_EQ(file().last_request_.kind, store::BarrierKind::kCommit);
}

TEST_F(SessionTest, AClockThatWasSetBackHoldsUpNoVersion) {
  alice_.schedule_.mutable_version_every()->set_seconds(600);
  alice_.schedule_.mutable_version_min_interval()->set_seconds(60);
  alice_.Open(v1::INTENT_CREATE);
  alice_.Close(1);
  file().MakeDurable();
  clock_.SetNow(clock_.Now() - absl::Hours(30));
  alice_.Barrier(2);
  EXPECT_EQ(file().last_request_.kind, store::BarrierKind::kCommit) << "of a flush";
  alice_.Close(3);
  EXPECT_EQ(file().last_request_.kind, store::BarrierKind::kCommit) << "of a close";
}

TEST_F(SessionTest, AClosesVersionWaitsWhereTheNewestIsTooYoung) {
  alice_.schedule_.mutable_version_min_interval()->set_seconds(60);
  alice_.Open(v1::INTENT_CREATE);
  alice_.Close(1);
  EXPECT_EQ(file().last_request_.kind, store::BarrierKind::kCommit) << "the first";
  file().MakeDurable();
  const absl::Time made = clock_.Now();
  clock_.Advance(absl::Seconds(10));
  alice_.Close(2);
  EXPECT_EQ(file().last_request_.kind, store::BarrierKind::kSync);
  EXPECT_EQ(file().last_request_.version_at, made + absl::Seconds(60));
  file().MakeDurable();
  EXPECT_EQ(alice_.answers_.back().cut_durable().version(), 1) << "the newest there is";
  alice_.Barrier(3, v1::BARRIER_KIND_COMMIT);
  EXPECT_EQ(file().last_request_.kind, store::BarrierKind::kCommit) << "asked for by name";
}

TEST_F(SessionTest, AScheduleOutOfRangeIsRefused) {
  alice_.schedule_.mutable_version_every()->set_seconds(-1);
  alice_.Open(v1::INTENT_CREATE);
  EXPECT_EQ(alice_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(alice_.message(), HasSubstr("version_every"));
}

TEST_F(SessionTest, TellsHowTheFileStandsToTheLocalOne) {
  MirrorStates mirrors(clock_);
  environment_.mirrors = &mirrors;
  Client writer(environment_, 7);
  writer.Open(v1::INTENT_CREATE);
  const auto state = [&] { return mirrors.StatusOf(*file().Info()).state(); };
  EXPECT_EQ(state(), v1::MIRROR_STATE_CONNECTED);
  v1::MirrorFileRequest request;
  request.mutable_keep_alive()->mutable_mirror()->set_state(v1::MIRROR_STATE_RESYNCING);
  writer.session_->OnRequest(request);
  EXPECT_EQ(state(), v1::MIRROR_STATE_RESYNCING);
  writer.session_->OnLost();
  EXPECT_EQ(state(), v1::MIRROR_STATE_DEGRADED);
}

TEST_F(SessionTest, AStrangersRefusedOpenSaysNothingOfTheFile) {
  MirrorStates mirrors(clock_);
  environment_.mirrors = &mirrors;
  Client writer(environment_, 7);
  writer.Open(v1::INTENT_CREATE);
  writer.Close(1);
  file().MakeDurable();
  writer.session_->OnHalfClose();
  file().info_.local.inode = 7;
  const auto state = [&] { return mirrors.StatusOf(*file().Info()).state(); };
  EXPECT_EQ(state(), v1::MIRROR_STATE_IN_SYNC);
  file().info_.origin.path = "/elsewhere/x.h5";
  Client stranger(environment_, 8);
  stranger.Open(v1::INTENT_UPLOAD);
  EXPECT_EQ(stranger.opened().relation(), v1::RELATION_DIVERGED);
  EXPECT_EQ(state(), v1::MIRROR_STATE_IN_SYNC);
  file().info_.origin.path = "/data/x.h5";
  Client own(environment_, 9);
  own.Open(v1::INTENT_UPLOAD);
  EXPECT_EQ(state(), v1::MIRROR_STATE_DIVERGED);
}

TEST_F(SessionTest, AStateThatIsNotAWritersToSayEndsTheStream) {
  alice_.Open(v1::INTENT_CREATE);
  v1::MirrorFileRequest request;
  request.mutable_keep_alive()->mutable_mirror()->set_state(v1::MIRROR_STATE_IN_SYNC);
  alice_.session_->OnRequest(request);
  EXPECT_EQ(alice_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(alice_.message(), HasSubstr("mirror.state"));
}

}  // namespace
}  // namespace h5mirror::server
