#include "server/mirror/relation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/hex.h"
#include "base/remote_origin.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

constexpr store::FileId kFileId = {1};
constexpr store::SessionId kSession = {2};
constexpr store::SessionId kOtherSession = {3};

// A file with one version at cut 40, written from m1:/data/x.h5 by barrier 5 of another session.
store::FileInfo Existing() {
  store::FileInfo info;
  info.file_id = kFileId;
  info.last_cut = info.durable_cut = 40;
  info.last_barrier = info.durable_barrier = {kOtherSession, 5};
  info.newest_version.version = 12;
  info.newest_version.cut = 40;
  info.origin = {"m1", "node7", "/data/x.h5"};
  return info;
}

// What its own client says after a clean close.
v1::OpenSession Known(v1::Intent intent) {
  v1::OpenSession open;
  open.set_name("x.h5");
  open.set_intent(intent);
  open.set_file_id(ToByteString(kFileId));
  open.set_session_id(ToByteString(kSession));
  open.mutable_origin()->set_machine_id("m1");
  open.mutable_origin()->set_host("node7");
  open.mutable_origin()->set_path("/data/x.h5");
  open.set_base_cut(40);
  return open;
}

v1::OpenSession With(v1::Intent intent, const std::function<void(v1::OpenSession&)>& change) {
  v1::OpenSession open = Known(intent);
  change(open);
  return open;
}

void SetBarrier(v1::OpenSession& open, const store::SessionId& session, uint64_t seq) {
  open.mutable_base_barrier()->set_session_id(ToByteString(session));
  open.mutable_base_barrier()->set_seq(seq);
}

struct Row {
  const char* claim;
  v1::OpenSession open;
  store::FileInfo info;
  v1::Relation expected;
};

// The rows of docs/design/020-which-side-is-right.md.
TEST(RelationTest, FollowsTheTable) {
  const store::FileInfo none;
  const store::FileInfo existing = Existing();
  store::FileInfo unchanged = existing;
  unchanged.newest_version.version = 3;
  unchanged.newest_version.cut = 30;
  unchanged.last_is_version = true;
  store::FileInfo own = Existing();  // Its newest cut is the session's barrier 7.
  own.last_cut = 44;
  own.last_barrier = {kSession, 7};
  const auto other_origin = [](v1::OpenSession& open) { open.mutable_origin()->set_path("/y.h5"); };
  const auto other_machine = [](v1::OpenSession& open) {
    open.mutable_origin()->set_machine_id("m2");
  };
  const auto other_host = [](v1::OpenSession& open) { open.mutable_origin()->set_host("renamed"); };
  const auto renamed = [](v1::OpenSession& open) {
    open.set_renamed_from("old.h5");
    open.mutable_origin()->set_path("/data/new.h5");
  };
  const auto renamed_elsewhere = [](v1::OpenSession& open) {
    open.set_renamed_from("old.h5");
    open.mutable_origin()->set_machine_id("m2");
  };
  const auto base = [](int64_t cut) {
    return [cut](v1::OpenSession& open) { open.set_base_cut(cut); };
  };
  const auto barrier = [](const store::SessionId& session, uint64_t seq) {
    return [session, seq](v1::OpenSession& open) { SetBarrier(open, session, seq); };
  };
  const auto other_id = [](v1::OpenSession& open) { open.set_file_id(std::string(16, 'x')); };
  const auto no_id = [](v1::OpenSession& open) { open.clear_file_id(); };

  store::FileInfo closed = Existing();
  closed.local = {7, 4096, 1, 2};
  const auto moved = [](int64_t cut, int64_t ctime_ns) {
    return [cut, ctime_ns](v1::OpenSession& open) {
      open.set_base_cut(-1);
      open.mutable_moved_base()->set_cut(cut);
      *open.mutable_moved_base()->mutable_local() = ToProto(store::LocalStat{7, 4096, 1, ctime_ns});
    };
  };

  const v1::Intent kContinue = v1::INTENT_CONTINUE;
  const Row rows[] = {
      {"clean record, equal", Known(kContinue), existing, v1::RELATION_MATCH},
      {"the host was renamed", With(kContinue, other_host), existing, v1::RELATION_MATCH},
      {"another file id", With(kContinue, other_id), existing, v1::RELATION_DIVERGED},
      {"no file id", With(kContinue, no_id), existing, v1::RELATION_DIVERGED},
      {"another path", With(kContinue, other_origin), existing, v1::RELATION_DIVERGED},
      {"renamed locally", With(kContinue, renamed), existing, v1::RELATION_MATCH},
      {"renamed, it says, elsewhere", With(kContinue, renamed_elsewhere), existing,
       v1::RELATION_DIVERGED},
      {"another machine", With(kContinue, other_machine), existing, v1::RELATION_DIVERGED},
      {"the server went on", With(kContinue, base(30)), existing, v1::RELATION_DIVERGED},
      {"the server went back", With(kContinue, base(50)), existing, v1::RELATION_DIVERGED},
      {"the client knows it differs", With(kContinue, base(-1)), existing, v1::RELATION_DIVERGED},
      {"the server lost it", Known(kContinue), none, v1::RELATION_DIVERGED},
      {"base 0 of no file", With(kContinue, base(0)), none, v1::RELATION_DIVERGED},
      {"moved, the same close", With(kContinue, moved(40, 2)), closed, v1::RELATION_MATCH},
      {"moved, another close of that number", With(kContinue, moved(40, 3)), closed,
       v1::RELATION_DIVERGED},
      {"moved, an older close", With(kContinue, moved(30, 2)), closed, v1::RELATION_DIVERGED},
      {"moved, nothing is known of a close", With(kContinue, moved(40, 2)), existing,
       v1::RELATION_DIVERGED},
      {"moved, no file", With(kContinue, moved(40, 2)), none, v1::RELATION_DIVERGED},
      {"pending commit arrived", With(kContinue, barrier(kOtherSession, 5)), existing,
       v1::RELATION_MATCH},
      {"pending commit never arrived", With(kContinue, barrier(kOtherSession, 6)), existing,
       v1::RELATION_DIVERGED},
      {"pending commit of another session", With(kContinue, barrier(kSession, 5)), existing,
       v1::RELATION_DIVERGED},
      {"created, no file", Known(v1::INTENT_CREATE), none, v1::RELATION_NEW},
      {"created again by its origin", Known(v1::INTENT_CREATE), existing, v1::RELATION_NEW},
      {"created after a rollback", With(v1::INTENT_CREATE, base(-1)), existing, v1::RELATION_NEW},
      {"created by another", With(v1::INTENT_CREATE, other_origin), existing,
       v1::RELATION_DIVERGED},
      {"uploaded, no file", Known(v1::INTENT_UPLOAD), none, v1::RELATION_NEW},
      {"uploaded over a file", Known(v1::INTENT_UPLOAD), existing, v1::RELATION_DIVERGED},
      {"pushed", With(v1::INTENT_REPLACE, other_origin), existing, v1::RELATION_NEW},
      {"pushed, no file", Known(v1::INTENT_REPLACE), none, v1::RELATION_NEW},
      {"resumed, own cut", With(v1::INTENT_RESUME, base(40)), own, v1::RELATION_MATCH},
      {"resumed, no cut yet", With(v1::INTENT_RESUME, base(40)), existing, v1::RELATION_MATCH},
      {"resumed, others wrote", With(v1::INTENT_RESUME, base(30)), existing, v1::RELATION_DIVERGED},
      {"resumed creation, nothing survived", With(v1::INTENT_RESUME, base(0)), none,
       v1::RELATION_NEW},
      {"resumed re-creation, nothing survived", With(v1::INTENT_RESUME, base(0)), existing,
       v1::RELATION_NEW},
      {"resync of the newest cut", With(v1::INTENT_RESYNC, base(40)), existing, v1::RELATION_MATCH},
      {"resync from another origin", With(v1::INTENT_RESYNC, other_origin), existing,
       v1::RELATION_MATCH},
      {"resync without an id", With(v1::INTENT_RESYNC, no_id), existing, v1::RELATION_MATCH},
      {"resync of the version that the newest cut did not change",
       With(v1::INTENT_RESYNC, base(30)), unchanged, v1::RELATION_MATCH},
      {"resync of an older cut", With(v1::INTENT_RESYNC, base(30)), existing,
       v1::RELATION_DIVERGED},
      {"resync, the server went back", With(v1::INTENT_RESYNC, base(50)), existing,
       v1::RELATION_DIVERGED},
      {"resync of another file", With(v1::INTENT_RESYNC, other_id), existing,
       v1::RELATION_DIVERGED},
      {"resync, no file", Known(v1::INTENT_RESYNC), none, v1::RELATION_DIVERGED},
      {"no intent", Known(v1::INTENT_UNSPECIFIED), existing, v1::RELATION_DIVERGED},
  };
  for (const Row& row : rows) {
    const RelationDecision decision = DecideRelation(row.open, row.info);
    EXPECT_EQ(decision.relation, row.expected) << row.claim << ": " << decision.reason;
    EXPECT_EQ(decision.reason.empty(), row.expected != v1::RELATION_DIVERGED) << row.claim;
  }
}

TEST(RelationTest, OnlyTheSameFileUnderAnotherPathWasRenamed) {
  v1::OpenSession open = Known(v1::INTENT_CONTINUE);
  EXPECT_FALSE(IsRenamed(open, Existing())) << "it does not say so";
  open.set_renamed_from("old.h5");
  EXPECT_FALSE(IsRenamed(open, Existing())) << "one path, two names: configured so";
  open.mutable_origin()->set_path("/data/new.h5");
  EXPECT_TRUE(IsRenamed(open, Existing()));
  EXPECT_FALSE(IsRenamed(open, store::FileInfo()));
  open.set_file_id(std::string(16, 'x'));
  EXPECT_FALSE(IsRenamed(open, Existing())) << "the record is of another file";
}

TEST(RelationTest, ResumedSessionLearnsWhichBarriersSurvived) {
  store::FileInfo info = Existing();
  info.last_cut = 44;
  info.last_barrier = {kSession, 7};
  info.durable_barrier = {kSession, 4};
  const RelationDecision decision = DecideRelation(Known(v1::INTENT_RESUME), info);
  EXPECT_EQ(decision.last_barrier_seq, 7u);
  EXPECT_EQ(decision.durable_barrier_seq, 4u);
}

TEST(RelationTest, ResumedReCreationNeverGoesOnFromTheOldHead) {
  v1::OpenSession open = Known(v1::INTENT_RESUME);
  open.set_base_cut(0);
  EXPECT_EQ(DecideRelation(open, Existing(), Began::kUnknown).relation, v1::RELATION_NEW);
  EXPECT_EQ(DecideRelation(open, Existing(), Began::kNewGeneration).relation, v1::RELATION_NEW);
}

TEST(RelationTest, ARollbackUnderASessionThatBeganAGenerationIsKept) {
  v1::OpenSession open = Known(v1::INTENT_RESUME);
  store::FileInfo info = Existing();
  info.last_cut = open.base_cut() + 1;  // of no session
  EXPECT_EQ(DecideRelation(open, info, Began::kNewGeneration).relation, v1::RELATION_DIVERGED);
  EXPECT_EQ(DecideRelation(open, store::FileInfo(), Began::kNewGeneration).relation,
            v1::RELATION_NEW)
      << "the file was removed";
}

TEST(RelationTest, ResumedReCreationHasNothingOfItsPredecessor) {
  v1::OpenSession open = Known(v1::INTENT_RESUME);
  open.set_predecessor_session_id(ToByteString(kOtherSession));
  open.set_base_cut(0);
  store::FileInfo info = Existing();
  info.last_barrier = {kOtherSession, 3};
  EXPECT_EQ(DecideRelation(open, info, Began::kUnknown).relation, v1::RELATION_MATCH);
  EXPECT_EQ(DecideRelation(open, info, Began::kNewGeneration).relation, v1::RELATION_NEW);
}

TEST(RelationTest, BarriersOfOthersAreNotReported) {
  const RelationDecision decision = DecideRelation(Known(v1::INTENT_RESUME), Existing());
  EXPECT_EQ(decision.last_barrier_seq, 0u);
  EXPECT_EQ(decision.durable_barrier_seq, 0u);
}

TEST(RelationTest, HeadIsDescribedForPeople) {
  EXPECT_THAT(DescribeHead(Existing()), HasSubstr("head is version 12 of"));
  EXPECT_THAT(DescribeHead(Existing()), HasSubstr("node7:/data/x.h5"));
  EXPECT_EQ(DescribeHead(store::FileInfo()), "the server has no such file");
}

TEST(RelationTest, WhoHasNoLocalFileSaysNothingOfAMirror) {
  v1::OpenSession open = Known(v1::INTENT_RESUME);
  EXPECT_TRUE(TellsOfMirror(open, Existing()));
  open.mutable_origin()->set_path(RemoteOriginOf(kSession));
  EXPECT_FALSE(TellsOfMirror(open, Existing()));
  EXPECT_FALSE(RemoteOriginOf(kSession) == RemoteOriginOf(kOtherSession));
}

TEST(RelationTest, FollowerMatchesAtAnyCutOfItsPredecessors) {
  v1::OpenSession open = Known(v1::INTENT_RESUME);
  store::FileInfo info = Existing();
  open.set_base_cut(info.last_cut - 2);
  EXPECT_EQ(DecideRelation(open, info).relation, v1::RELATION_DIVERGED);
  open.set_base_cut_newest(info.last_cut);
  EXPECT_EQ(DecideRelation(open, info).relation, v1::RELATION_MATCH);
  open.set_base_cut_newest(info.last_cut - 1);
  EXPECT_EQ(DecideRelation(open, info).relation, v1::RELATION_DIVERGED);
}

// A session that ended while the server was away, taken up by one of another program.
TEST(RelationTest, ADirtyMapGoesOnFromItsSessionsCutsAndFromNoOthers) {
  store::FileInfo info = Existing();
  info.last_cut = 44;
  v1::OpenSession open = Known(v1::INTENT_RESUME);
  open.set_predecessor_session_id(ToByteString(kOtherSession));
  open.set_base_cut(30);
  const RelationDecision decision = DecideRelation(open, info);
  EXPECT_EQ(decision.relation, v1::RELATION_MATCH);
  EXPECT_EQ(decision.last_barrier_seq, 0u) << "not the new session's";
  info.last_barrier.session_id = {9};
  EXPECT_EQ(DecideRelation(open, info).relation, v1::RELATION_DIVERGED);
  open.set_base_cut(44);
  EXPECT_EQ(DecideRelation(open, info).relation, v1::RELATION_MATCH);
  info.file_id = {8};
  EXPECT_EQ(DecideRelation(open, info).relation, v1::RELATION_DIVERGED) << "another file's cut 44";
}

}  // namespace
}  // namespace h5mirror::server
