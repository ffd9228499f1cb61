// Streams that bring parts of another session's cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hex.h"
#include "base/testing/fake_clock.h"
#include "server/mirror/session.h"
#include "server/testing/fake_store.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

constexpr char kSecret[] = "0123456789abcdef";

// A client's end of one stream.
class Client final : public SessionOutput {
 public:
  explicit Client(const SessionEnvironment& environment, const std::string& user = "token")
      : session_(Session::Create(environment, {user, Rights::All(), Principal::Issuer::kToken},
                                 "peer", *this)) {}
  ~Client() override { session_->Detach(); }

  void Send(v1::MirrorFileResponse response) override { answers_.push_back(std::move(response)); }
  void Finish(const absl::Status& status) override {
    if (!end_.has_value()) end_ = status;
  }
  absl::Status Require(const Need& /*need*/, std::string /*claimed*/) override { return right_; }

  void Open(const std::string& secret = kSecret) {
    v1::MirrorFileRequest request;
    v1::OpenSession& open = *request.mutable_open();
    open.mutable_protocol()->set_oldest(1);
    open.mutable_protocol()->set_newest(1);
    open.set_name("x.h5");
    open.set_session_id(std::string(16, 's'));
    open.set_intent(v1::INTENT_CREATE);
    open.set_join_secret(secret);
    open.mutable_origin()->set_path("/data/x.h5");
    session_->OnRequest(request);
  }
  void Join(uint64_t token, uint64_t after_cuts, const std::string& secret = kSecret) {
    v1::MirrorFileRequest request;
    v1::JoinSession& join = *request.mutable_join();
    join.set_name("x.h5");
    join.set_session_id(std::string(16, 's'));
    join.set_join_secret(secret);
    join.set_token(token);
    join.set_after_cuts(after_cuts);
    session_->OnRequest(request);
  }
  void Write(uint64_t offset, std::string_view data) {
    rpc::WritesView writes;
    writes.extents = {{offset, data.size()}};
    writes.pieces = {data};
    writes.data_bytes = data.size();
    session_->OnRequest(writes);
  }
  void Barrier(uint64_t seq, uint64_t part_bytes) {
    v1::MirrorFileRequest request;
    request.mutable_barrier()->set_seq(seq);
    request.mutable_barrier()->set_kind(v1::BARRIER_KIND_TICK);
    request.mutable_barrier()->set_part_bytes(part_bytes);
    session_->OnRequest(request);
  }
  const v1::SessionOpened& opened() const { return answers_.front().opened(); }
  absl::StatusCode code() const { return end_.has_value() ? end_->code() : absl::StatusCode(-1); }
  std::string message() const { return end_.has_value() ? std::string(end_->message()) : "open"; }

  std::vector<v1::MirrorFileResponse> answers_;
  std::optional<absl::Status> end_;
  absl::Status right_;
  std::shared_ptr<Session> session_;
};

class SessionPartsTest : public ::testing::Test {
 protected:
  SessionPartsTest() {
    lead_.Open();
    token_ = lead_.opened().token();
  }
  // As the real store, the fake waits for those that wait.
  ~SessionPartsTest() override {
    for (auto& [name, file] : store_.files_) {
      while (!file->waiting_.empty()) file->MakeDurable();
    }
  }
  std::string written() { return store_.files_.at("x.h5")->written_; }

  FakeClock clock_;
  FakeStore store_;
  Metrics metrics_{1};
  LeaseTable leases_{clock_, absl::Seconds(10)};
  SessionMemory memory_;
  CommitBoard commits_;
  SessionEnvironment environment_{store_, leases_, clock_, metrics_, memory_, commits_, 4};
  Client lead_{environment_};
  Client part_{environment_};
  store::Token token_ = 0;
};

TEST_F(SessionPartsTest, APartIsOfTheNextCut) {
  EXPECT_TRUE(lead_.opened().takes_parts());
  part_.Join(token_, 0);
  part_.Write(0, "part");
  part_.session_->OnHalfClose();
  ASSERT_EQ(part_.answers_.size(), 1u) << part_.message();
  EXPECT_EQ(part_.answers_[0].part_taken().bytes(), 4u);
  EXPECT_EQ(part_.code(), absl::StatusCode::kOk);
  lead_.Write(0, "lead");
  lead_.Barrier(1, 4);
  EXPECT_TRUE(lead_.answers_.back().has_cut_visible()) << lead_.message();
  EXPECT_EQ(written(), "partlead");
}

TEST_F(SessionPartsTest, ALateFrameOfAnEarlierCutIsNotWritten) {
  part_.Join(token_, 0);
  part_.Write(0, "in time");
  lead_.Barrier(1, 0);
  part_.Write(0, "late");
  EXPECT_EQ(part_.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(written(), "in time");
  EXPECT_EQ(lead_.message(), "open") << "the session goes on";
}

TEST_F(SessionPartsTest, APartThatEndsBehindTheBarrierDoesNotCount) {
  part_.Join(token_, 0);
  part_.Write(0, "part");
  lead_.Barrier(1, 0);
  part_.session_->OnHalfClose();
  EXPECT_EQ(part_.code(), absl::StatusCode::kAborted);
  lead_.Barrier(2, 4);
  EXPECT_EQ(lead_.code(), absl::StatusCode::kAborted);
}

TEST_F(SessionPartsTest, ABarrierThatCountsMoreThanCameMakesNoCut) {
  part_.Join(token_, 0);
  part_.Write(0, "part");
  lead_.Barrier(1, 4);
  EXPECT_EQ(lead_.code(), absl::StatusCode::kAborted) << "it was not half-closed";
  EXPECT_THAT(lead_.message(), HasSubstr("only 0 bytes came"));
  EXPECT_FALSE(lead_.answers_.back().has_cut_visible());
}

TEST_F(SessionPartsTest, ABrokenPartEndsNeitherSessionNorFile) {
  part_.Join(token_, 0);
  part_.Write(0, "part");
  part_.session_->OnLost();
  EXPECT_EQ(part_.code(), absl::StatusCode::kCancelled);
  lead_.Write(0, "again");
  lead_.Barrier(1, 0);
  EXPECT_TRUE(lead_.answers_.back().has_cut_visible());
  EXPECT_TRUE(leases_.HolderOf("x.h5").has_value());
}

TEST_F(SessionPartsTest, ALostSessionTakesNoMoreOfAPart) {
  part_.Join(token_, 0);
  lead_.session_->OnLost();
  part_.Write(0, "part");
  EXPECT_EQ(part_.code(), absl::StatusCode::kAborted);
  EXPECT_EQ(written(), "");
}

TEST_F(SessionPartsTest, WithoutSecretTokenPlaceOrNameNobodyJoins) {
  const auto joins = [&](uint64_t token, uint64_t after_cuts, const std::string& secret,
                         const std::string& user) {
    Client client(environment_, user);
    client.Join(token, after_cuts, secret);
    client.Write(0, "x");
    return client.code();
  };
  EXPECT_EQ(joins(token_, 0, std::string(16, 'x'), "token"), absl::StatusCode::kAborted);
  EXPECT_EQ(joins(token_, 0, "short", "token"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(joins(token_ + 1, 0, kSecret, "token"), absl::StatusCode::kAborted);
  EXPECT_EQ(joins(token_, 1, kSecret, "token"), absl::StatusCode::kAborted);
  EXPECT_EQ(joins(token_, 0, kSecret, "somebody else"), absl::StatusCode::kAborted);
  EXPECT_EQ(written(), "");
}

TEST_F(SessionPartsTest, ACallerWithoutTheRightToWriteDoesNotJoin) {
  part_.right_ = absl::PermissionDeniedError("no");
  part_.Join(token_, 0);
  EXPECT_EQ(part_.code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(SessionPartsTest, ASessionWithoutSecretTakesNoParts) {
  lead_.session_->OnHalfClose();
  Client other(environment_);
  other.Open("");
  EXPECT_FALSE(other.opened().takes_parts());
  part_.Join(other.opened().token(), 0);
  EXPECT_EQ(part_.code(), absl::StatusCode::kAborted);
}

TEST_F(SessionPartsTest, APartMakesNoCut) {
  part_.Join(token_, 0);
  part_.Barrier(1, 0);
  EXPECT_EQ(part_.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SessionPartsTest, APartThatStopsInTheMiddleIsEndedAndKeepsTheLeaseAliveUntilThen) {
  part_.Join(token_, 0);
  clock_.Advance(absl::Seconds(8));
  part_.Write(0, "part");
  clock_.Advance(absl::Seconds(8));
  EXPECT_EQ(leases_.RevokeExpired(), 0) << "the part came 8 s ago";
  part_.session_->OnTimer();
  EXPECT_EQ(part_.message(), "open");
  clock_.Advance(absl::Seconds(8));
  part_.session_->OnTimer();
  EXPECT_EQ(part_.code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace h5mirror::server
