// ForkVersion and PromoteVersion over the wire: leases, rights, and names that get another file
// while a call is under way.
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/settings/token_file.h"
#include "server/testing/hooked_store.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(60);

v1::ForkVersionRequest ForkRequest(const std::string& name, const std::string& new_name) {
  v1::ForkVersionRequest request;
  request.set_name(name);
  request.set_version(1);
  request.set_new_name(new_name);
  request.mutable_writer()->set_claimed_user("alice");
  request.set_request_id(ToByteString(RandomBytes16()));
  return request;
}

v1::PromoteVersionRequest PromoteRequest(const std::string& name, const std::string& into_name) {
  v1::PromoteVersionRequest request;
  request.set_name(name);
  request.set_into_name(into_name);
  request.mutable_writer()->set_claimed_user("alice");
  request.set_request_id(ToByteString(RandomBytes16()));
  return request;
}

class ForksTest : public MirrorServerTest {
 protected:
  absl::StatusOr<v1::Version> Fork(const std::string& name, const std::string& new_name) {
    return client_->ForkVersion(ForkRequest(name, new_name), kTimeout);
  }
  absl::StatusOr<v1::PromoteVersionResponse> Promote(const std::string& name,
                                                     const std::string& into_name) {
    return client_->PromoteVersion(PromoteRequest(name, into_name), kTimeout);
  }
  // One version more, by a session that begins the file anew.
  void Change(const std::string& name, const std::string& data) {
    auto stream = Open(name, v1::INTENT_REPLACE);
    Write(*stream, 0, data);
    EXPECT_GT(Cut(*stream, 1, v1::BARRIER_KIND_COMMIT, data.size()).version(), 1);
    EXPECT_TRUE(stream->Finish().ok());
  }
};

TEST_F(ForksTest, AForkIsChangedAndPromoted) {
  Start();
  MirrorWhole("run.h5", "first");
  const auto made = Fork("run.h5", "trial.h5");
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->version(), 1);
  EXPECT_EQ(made->comment(), "fork of run.h5@1");
  EXPECT_EQ(made->source().kind(), v1::SOURCE_KIND_FORK);
  EXPECT_EQ(made->source().name(), "run.h5");
  EXPECT_EQ(made->source().claimed_user(), "alice");
  EXPECT_EQ(Settled("trial.h5")->forked_from().file_id(), Settled("run.h5")->file_id());
  EXPECT_FALSE(Settled("run.h5")->has_forked_from());
  EXPECT_EQ(Head("trial.h5"), "first");
  Change("trial.h5", "a better one");
  const auto promoted = Promote("trial.h5", "run.h5");
  ASSERT_TRUE(promoted.ok()) << promoted.status();
  EXPECT_EQ(promoted->version().version(), 2);
  EXPECT_EQ(promoted->promoted_version(), 2);
  EXPECT_EQ(promoted->version().source().kind(), v1::SOURCE_KIND_PROMOTION);
  EXPECT_EQ(Head("run.h5"), "a better one");
  EXPECT_EQ(ReadBack("run.h5", 1), "first");
  EXPECT_TRUE(Promote("trial.h5", "run.h5")->unchanged());
}

TEST_F(ForksTest, ARepeatedIdMakesNothingTwice) {
  Start();
  MirrorWhole("run.h5", "first");
  const auto fork = ForkRequest("run.h5", "trial.h5");
  ASSERT_TRUE(client_->ForkVersion(fork, kTimeout).ok());
  EXPECT_EQ(client_->ForkVersion(fork, kTimeout)->version(), 1);
  EXPECT_TRUE(absl::IsAlreadyExists(Fork("run.h5", "trial.h5").status()));
  Change("trial.h5", "second");
  const auto promote = PromoteRequest("trial.h5", "run.h5");
  EXPECT_EQ(client_->PromoteVersion(promote, kTimeout)->version().version(), 2);
  EXPECT_EQ(client_->PromoteVersion(promote, kTimeout)->version().version(), 2);
}

TEST_F(ForksTest, AnIdOfAnotherSizeOrAVersionBelowZeroIsRefused) {
  Start();
  MirrorWhole("run.h5", "first");
  auto fork = ForkRequest("run.h5", "trial.h5");
  fork.set_request_id("short");
  EXPECT_TRUE(absl::IsInvalidArgument(client_->ForkVersion(fork, kTimeout).status()));
  auto promote = PromoteRequest("run.h5", "run.h5");
  promote.set_version(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(client_->PromoteVersion(promote, kTimeout).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Fork("run.h5", "").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Promote("run.h5", "").status()));
}

TEST_F(ForksTest, AWriterKeepsItsFileAndItsName) {
  Start();
  MirrorWhole("run.h5", "first");
  ASSERT_TRUE(Fork("run.h5", "trial.h5").ok());
  auto begun = Open("new.h5", v1::INTENT_CREATE);
  const absl::Status taken = Fork("run.h5", "new.h5").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(taken)) << taken;
  Change("trial.h5", "second");
  auto writer = Open("run.h5", v1::INTENT_CREATE);
  auto promote = PromoteRequest("trial.h5", "run.h5");
  for (const bool dry_run : {true, false}) {
    promote.set_dry_run(dry_run);
    const absl::Status refused = client_->PromoteVersion(promote, kTimeout).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("run.h5 is being written by alice"));
  }
  EXPECT_TRUE(Fork("run.h5", "other.h5").ok()) << "the source may be written";
  EXPECT_TRUE(writer->Finish().ok());
  EXPECT_TRUE(begun->Finish().ok());
}

TEST_F(ForksTest, ADryRunMakesNothing) {
  Start();
  MirrorWhole("run.h5", "first");
  ASSERT_TRUE(Fork("run.h5", "trial.h5").ok());
  Change("trial.h5", "second");
  auto promote = PromoteRequest("trial.h5", "run.h5");
  promote.set_dry_run(true);
  const auto tried = client_->PromoteVersion(promote, kTimeout);
  ASSERT_TRUE(tried.ok()) << tried.status();
  EXPECT_EQ(tried->version().version(), 1);
  EXPECT_GT(tried->differing_bytes(), 0);
  EXPECT_EQ(Settled("run.h5")->version_count(), 1);
}

AccessRule Rule(const std::string& files, std::vector<std::string> users, std::string_view allow) {
  AccessRule rule;
  rule.files = {files};
  rule.users = std::move(users);
  rule.allow = *Rights::Parse(allow);
  return rule;
}

// Each owns what it made in shared/, and all may read what lies in pub/.
class ForkRightsTest : public ForksTest {
 protected:
  void SetUp() override {
    ForksTest::SetUp();
    hooked_ = HookedStore::PutBefore(store_);
    config_.tokens_file = directory_.path() / "tokens";
    for (const char* name : {"anna", "bob"}) {
      tokens_[name] = *AddToken(config_.tokens_file, name, Rights::All());
    }
    AccessRule own = Rule("shared/**", {}, "read,write,restore,delete");
    own.owners = {"${user}"};
    config_.access = {own, Rule("pub/**", {"anna"}, "read,write"), Rule("pub/**", {}, "read")};
    options_.token = tokens_.at("anna");
    Start();
    MirrorWhole("shared/a.h5", "anna's");
    MirrorWhole("pub/a.h5", "for all");
    Be("bob");
    MirrorWhole("shared/b.h5", "bob's");
  }
  void Be(const std::string& name) {
    options_.token = tokens_.at(name);
    Connect();
  }
  void MoveInside(const std::string& from, const std::string& to) {
    const absl::Status moved = hooked_->inner().Move(from, to);
    EXPECT_TRUE(moved.ok()) << moved;
  }
  // Anna's file takes the name of bob's, behind everybody's back.
  void SwapIn() {
    MoveInside("shared/b.h5", "shared/away.h5");
    MoveInside("shared/a.h5", "shared/b.h5");
  }

  std::map<std::string, std::string> tokens_;
  HookedStore* hooked_ = nullptr;  // store_ owns it
};

TEST_F(ForkRightsTest, AForkIsItsMakers) {
  ASSERT_TRUE(Fork("pub/a.h5", "shared/mine.h5").ok());
  EXPECT_EQ(Settled("shared/mine.h5")->owner(), "token:bob");
  Be("anna");
  EXPECT_TRUE(absl::IsNotFound(Settled("shared/mine.h5").status()));
}

TEST_F(ForkRightsTest, BothFilesCount) {
  EXPECT_TRUE(absl::IsNotFound(Fork("shared/a.h5", "shared/mine.h5").status()));
  EXPECT_TRUE(absl::IsNotFound(Fork("shared/none.h5", "shared/mine.h5").status()));
  EXPECT_TRUE(absl::IsNotFound(Fork("shared/b.h5", "shared/a.h5").status())) << "another's name";
  EXPECT_TRUE(absl::IsPermissionDenied(Fork("shared/b.h5", "pub/mine.h5").status()));
  ASSERT_TRUE(Fork("pub/a.h5", "shared/mine.h5").ok());
  const absl::Status refused = Promote("shared/mine.h5", "pub/a.h5").status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("\"restore\""));
  EXPECT_TRUE(absl::IsNotFound(Promote("shared/mine.h5", "shared/a.h5").status()));
}

// An open waits for a move that is under way, and so the first check was of another file.
TEST_F(ForkRightsTest, AFileThatTakesTheNameMeanwhileIsNotForked) {
  hooked_->MuteOwners();
  hooked_->BeforeOpen("shared/b.h5", [this] { SwapIn(); });
  const absl::Status refused = Fork("shared/b.h5", "shared/mine.h5").status();
  EXPECT_TRUE(absl::IsNotFound(refused)) << refused;
  EXPECT_TRUE(hooked_->has_acted());
  EXPECT_TRUE(absl::IsNotFound(hooked_->inner().OpenFile("shared/mine.h5").status()));
}

TEST_F(ForkRightsTest, AFileThatTakesTheNameMeanwhileGetsNoPromotion) {
  ASSERT_TRUE(Fork("shared/b.h5", "shared/mine.h5").ok());
  Change("shared/mine.h5", "changed");
  hooked_->MuteOwners();
  hooked_->BeforeOpen("shared/b.h5", [this] { SwapIn(); });
  const absl::Status refused = Promote("shared/mine.h5", "shared/b.h5").status();
  EXPECT_TRUE(absl::IsNotFound(refused)) << refused;
  EXPECT_TRUE(hooked_->has_acted());
  for (const char* name : {"shared/away.h5", "shared/b.h5"}) {
    EXPECT_EQ((*hooked_->inner().OpenFile(name))->GetVersion(0)->version, 1) << name;
  }
}

}  // namespace
}  // namespace h5mirror::server
