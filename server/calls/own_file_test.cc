// What a token with the right to write can do to files of others: nothing in their name.
#include "server/calls/own_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hex.h"
#include "server/settings/token_file.h"
#include "server/state/commit_board.h"
#include "server/state/convert.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class OwnFileTest : public MirrorServerTest {
 protected:
  void SetUp() override {
    MirrorServerTest::SetUp();
    config_.tokens_file = directory_.path() / "tokens";
    for (const char* name : {"alice", "bob", "carol"}) Add(name, "read,write");
    Add("root", "read,write,admin");
    Be("alice");
    Start();
    MirrorWhole("old.h5", "hello");
  }
  void Add(const std::string& name, const std::string& rights) {
    tokens_[name] = *AddToken(config_.tokens_file, name, *Rights::Parse(rights));
  }
  void Be(const std::string& name) {
    options_.token = tokens_.at(name);
    if (server_ != nullptr) Connect();
  }

  // Opens new.h5 as the file that was old.h5, with all that a reader of that is told.
  v1::SessionOpened OpenRenamed() {
    const v1::FileStatus old = *Settled("old.h5");
    v1::MirrorFileRequest request = OpenRequest("new.h5", v1::INTENT_CONTINUE);
    request.mutable_open()->set_renamed_from("old.h5");
    request.mutable_open()->set_file_id(old.file_id());
    request.mutable_open()->set_base_cut(old.last_cut());
    auto stream = client_->OpenMirrorStream();
    EXPECT_TRUE((*stream)->Send(request).ok());
    const auto answer = (*stream)->Receive();
    EXPECT_TRUE(answer.ok()) << answer.status();
    (*stream)->Finish().IgnoreError();
    return answer.ok() ? answer->opened() : v1::SessionOpened();
  }
  void ExpectNotMoved() {
    const v1::SessionOpened opened = OpenRenamed();
    EXPECT_EQ(opened.relation(), v1::RELATION_DIVERGED);
    EXPECT_THAT(opened.state(), HasSubstr("no such file"));
    EXPECT_TRUE(Settled("old.h5").ok());
    EXPECT_TRUE(absl::IsNotFound(Settled("new.h5").status()));
  }
  // Makes a version of old.h5 as the user of the last Be().
  void WriteOver(const std::string& data) {
    v1::SessionOpened opened;
    auto stream = Open("old.h5", v1::INTENT_REPLACE, &opened);
    EXPECT_EQ(opened.relation(), v1::RELATION_NEW);
    Write(*stream, 0, data);
    EXPECT_GT(Cut(*stream, 1, v1::BARRIER_KIND_COMMIT, data.size()).version(), 0);
    EXPECT_TRUE(stream->Finish().ok());
  }
  absl::StatusOr<v1::MirrorCheck> Check(int64_t version, int64_t differing_bytes) {
    v1::RecordCheckRequest request;
    request.set_name("old.h5");
    request.set_version(version);
    request.set_differing_bytes(differing_bytes);
    return client_->RecordCheck(request);
  }

  std::map<std::string, std::string> tokens_;
};

TEST_F(OwnFileTest, TheWriterOfAFileMovesItByOpeningItRenamed) {
  EXPECT_EQ(OpenRenamed().relation(), v1::RELATION_MATCH);
  EXPECT_TRUE(absl::IsNotFound(Settled("old.h5").status()));
  EXPECT_EQ(Settled("new.h5")->newest_version().version(), 1);
}

TEST_F(OwnFileTest, AnotherWriterMovesNothing) {
  Be("bob");
  ExpectNotMoved();
  WriteOver("bob's");  // Bob owns the newest version then, but not the file.
  ExpectNotMoved();
  Be("alice");
  ExpectNotMoved();  // The newest one is not hers.
}

TEST_F(OwnFileTest, AnAdministratorMovesIt) {
  Be("root");
  EXPECT_EQ(OpenRenamed().relation(), v1::RELATION_MATCH);
  EXPECT_TRUE(Settled("new.h5").ok());
}

TEST_F(OwnFileTest, AFileOfATimeWithoutTokensIsNobodys) {
  client_.reset();
  server_.reset();
  const auto tokens = std::exchange(config_.tokens_file, "");
  Start();
  MirrorWhole("older.h5", "hello");
  client_.reset();
  server_.reset();
  config_.tokens_file = tokens;
  Be("alice");
  Start();
  const auto file = store_->OpenFile("older.h5");
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Status refused = CheckOwnFile({"alice", {}}, *Rights::Parse("read,write"), **file);
  EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("a writer without a name"));
  EXPECT_TRUE(CheckOwnFile({"", Rights::All()}, Rights::All(), **file).ok());
}

TEST_F(OwnFileTest, AVersionThatAnotherAskedForSaysSo) {
  auto stream = Open("live.h5", v1::INTENT_CREATE);
  Write(*stream, 0, "hello");
  const auto live = store_->OpenFile("live.h5");
  Be("bob");
  v1::CommitVersionRequest request;
  request.set_name("live.h5");
  request.set_comment("calibrated\"; approved by alice");
  request.set_request_id(ToByteString(RandomBytes16()));
  request.mutable_writer()->set_claimed_user("alice");
  request.mutable_wait()->set_seconds(60);
  absl::StatusOr<v1::CommitVersionResponse> made = absl::UnknownError("not asked");
  std::thread asking([&] { made = client_->CommitVersion(request, absl::Seconds(90)); });
  // Which cut takes the request is not ours to say: cuts until one is a version.
  int64_t version = 0;
  for (uint64_t seq = 1; seq <= 2000 && version == 0; ++seq) {
    version = Cut(*stream, seq, v1::BARRIER_KIND_SYNC, 5).version();
    if (version == 0) absl::SleepFor(absl::Milliseconds(10));
  }
  asking.join();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->version().version(), version);
  EXPECT_EQ(made->version().verified_user(), "alice");
  EXPECT_EQ(made->version().comment(),
            "asked for by \"bob\": \"calibrated\\\"; approved by alice\"");
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(OwnFileTest, ACheckIsTakenFromWhoMadeTheVersion) {
  Be("bob");
  for (const int64_t version : {0, 1}) {
    const absl::Status refused = Check(version, 4096).status();
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("made by \"alice\""));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(Check(2, 0).status()));
  EXPECT_FALSE(Settled("old.h5")->has_last_check());
  Be("alice");
  const auto own = Check(1, 0);
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->differing_bytes(), 0);
  Be("root");
  ASSERT_TRUE(Check(1, 4096).ok());
  EXPECT_EQ(Settled("old.h5")->last_check().differing_bytes(), 4096);
}

TEST_F(OwnFileTest, ATagIsTakenFromAVersionByWhoMadeItOrMayDelete) {
  const auto tag = [&](const std::string& name, int64_t version, bool move) {
    v1::TagVersionRequest request;
    request.set_name("old.h5");
    request.set_version(version);
    request.set_tag(name);
    request.set_move(move);
    return client_->TagVersion(request).status();
  };
  const auto untag = [&](const std::string& name) {
    v1::UntagVersionRequest request;
    request.set_name("old.h5");
    request.set_tag(name);
    return client_->UntagVersion(request).status();
  };
  const auto tags = [&](int64_t version) {
    v1::GetVersionRequest request;
    request.set_name("old.h5");
    request.set_version(version);
    const auto found = client_->GetVersion(request);
    return std::vector<std::string>(found->tags().begin(), found->tags().end());
  };
  ASSERT_TRUE(tag("published", 1, false).ok());
  ASSERT_TRUE(tag("draft", 1, false).ok());
  Be("bob");
  WriteOver("bob's");
  ASSERT_TRUE(tag("bobs", 2, false).ok());
  EXPECT_TRUE(tag("checked", 1, false).ok()) << "a new tag takes nothing away";
  EXPECT_TRUE(tag("checked", 1, true).ok()) << "again";
  for (const absl::Status& refused : {untag("published"), tag("published", 2, true)}) {
    EXPECT_TRUE(absl::IsPermissionDenied(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()),
                AllOf(HasSubstr("version 1 of old.h5 was made by \"alice\""),
                      HasSubstr("needs the right \"delete\"")));
  }
  EXPECT_TRUE(absl::IsNotFound(untag("none")));
  EXPECT_THAT(tags(1), UnorderedElementsAre("published", "draft", "checked"));
  EXPECT_TRUE(untag("bobs").ok());
  Be("alice");
  EXPECT_TRUE(tag("published", 2, true).ok());
  EXPECT_TRUE(untag("draft").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(untag("published"))) << "it is at bob's version now";
  Be("root");
  EXPECT_TRUE(untag("published").ok());
}

TEST(JoinCommentsTest, OthersAreQuotedAndOnesOwnStays) {
  const auto asked = [](const std::string& user, const std::string& comment) {
    return std::make_shared<PendingCommit>(user, comment, Bytes16());
  };
  EXPECT_EQ(JoinComments("own", "alice", {}), "own");
  EXPECT_EQ(JoinComments("own", "alice", {asked("alice", "a"), asked("alice", "a")}), "own; a");
  EXPECT_EQ(JoinComments("own", "", {asked("", "a")}), "own; a");
  EXPECT_EQ(JoinComments("own", "alice", {asked("bob", "b"), asked("carol", "")}),
            "own; asked for by \"bob\": \"b\"; asked for by \"carol\"");
  const std::string long_text(kCommentBytesMax - 3, 'x');
  EXPECT_EQ(JoinComments("own", "alice", {asked("alice", long_text)}), "own");
  EXPECT_EQ(JoinComments("own", "alice", {asked("bob", long_text)}), "own; asked for by \"bob\"");
  PendingCommits many;
  for (int i = 0; i < 1000; ++i) many.push_back(asked(StrCat("user", i), "b"));
  EXPECT_EQ(JoinComments("own", "alice", many), "asked for by others, 1000 times; own");
  const std::string cut = JoinComments(long_text, "alice", many);
  EXPECT_THAT(cut, StartsWith("asked for by others, 1000 times; xxx"));
  EXPECT_LE(cut.size(), kCommentBytesMax);
}

}  // namespace
}  // namespace h5mirror::server
