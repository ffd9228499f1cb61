#include "archive/cluster_mark.h"

#include <string>
#include <utility>
#include <vector>

#include "archive/archive_line.h"
#include "archive/testing/object_store_contract.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onion_store/testing/fault_object_store.h"

namespace h5mirror::archive {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Asker = ClusterMark::Asker;

// A cluster with a memory of its own.
struct FakeCluster {
  explicit FakeCluster(std::string name)
      : mark({.cluster = std::move(name),
              .memory_place = "p/archive",
              .remembered = [this]() -> absl::StatusOr<ClusterMemory> {
                if (!failure.ok()) return failure;
                return memory;
              },
              .remember =
                  [this](const ClusterMemory& before, const ClusterMemory& after) {
                    if (on_remember != nullptr) std::exchange(on_remember, nullptr)();
                    if (!failure.ok()) return failure;
                    if (before != memory) return absl::AbortedError("it has changed");
                    memory = after;
                    return absl::OkStatus();
                  }}) {}

  ClusterMemory memory;
  absl::Status failure;  // of the memory
  std::function<void()> on_remember;
  ClusterMark mark;
};

class ClusterMarkTest : public testing::Test {
 protected:
  absl::Status Check(FakeCluster& cluster, Asker asker = Asker::kServer) {
    return cluster.mark.Check(top_, asker, kTestTimeout, nullptr, &verdict_);
  }
  std::string Mark() { return GetText(top_, "cluster").value_or(""); }

  store::FaultObjectStore top_;
  ClusterMark::Verdict verdict_ = ClusterMark::Verdict::kUnknown;
  FakeCluster lab_{"cephfs:/lab with the registry rados://h5/lab"};
  FakeCluster other_{"cephfs:/other with the registry rados://h5/other"};
};

TEST_F(ClusterMarkTest, TheFirstOneHasTheArchive) {
  ASSERT_TRUE(Check(lab_).ok());
  EXPECT_THAT(lab_.memory.id, SizeIs(32));
  EXPECT_TRUE(lab_.memory.is_claimed);
  EXPECT_EQ(lab_.memory.place, "mem://archive");
  EXPECT_EQ(Mark(), "h5mirror cluster 1\n" + lab_.memory.id +
                        "\ncephfs:/lab with the registry rados://h5/lab\n");
  EXPECT_TRUE(Check(lab_, Asker::kNewPart).ok());
  const absl::Status refused = Check(other_, Asker::kNewPart);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  for (const char* part : {"rados://h5/lab", "rados://h5/other", "of its own"}) {
    EXPECT_THAT(std::string(refused.message()), HasSubstr(part));
  }
  EXPECT_THAT(std::string(refused.message()), HasSubstr(lab_.memory.id));
  EXPECT_THAT(other_.memory.id, IsEmpty());
}

// An archive of a release that made no such object.
TEST_F(ClusterMarkTest, AnArchiveThatIsThereGetsIt) {
  ASSERT_TRUE(PutText(top_, "cells/lab/root", "owner").ok());
  EXPECT_TRUE(Check(lab_).ok());
  EXPECT_THAT(Mark(), HasSubstr(lab_.memory.id));
}

TEST_F(ClusterMarkTest, APlaceThatLostItIsNoEmptyArchive) {
  ASSERT_TRUE(Check(lab_).ok());
  top_.Lose("cluster");
  for (const Asker asker : {Asker::kServer, Asker::kNewPart}) {
    const absl::Status refused = Check(lab_, asker);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("is its disk mounted"));
  }
  EXPECT_THAT(top_.names(), IsEmpty());
}

TEST_F(ClusterMarkTest, APartThatIsKnownAgainBringsItBack) {
  ASSERT_TRUE(Check(lab_).ok());
  const std::string id = lab_.memory.id;
  top_.Lose("cluster");
  ASSERT_TRUE(PutText(top_, "cells/lab/root", "owner").ok());
  EXPECT_TRUE(Check(lab_, Asker::kServer).ok()) << "as after a take-over";
  EXPECT_EQ(verdict_, ClusterMark::Verdict::kLacks);
  EXPECT_EQ(Mark(), "");
  EXPECT_TRUE(absl::IsFailedPrecondition(Check(lab_, Asker::kNewPart)));
  EXPECT_TRUE(Check(lab_, Asker::kOwnPart).ok());
  EXPECT_THAT(Mark(), HasSubstr(id));
}

TEST_F(ClusterMarkTest, AnArchiveThatWasMovedIsKnownAgain) {
  ASSERT_TRUE(Check(lab_).ok());
  lab_.memory.place = "mem://before";
  EXPECT_TRUE(Check(lab_, Asker::kNewPart).ok());
  EXPECT_EQ(lab_.memory.place, "mem://archive");
  // A place where the cluster never had an archive may be empty.
  lab_.memory.place = "mem://before";
  const std::string id = lab_.memory.id;
  top_.Lose("cluster");
  EXPECT_TRUE(Check(lab_, Asker::kNewPart).ok());
  EXPECT_THAT(Mark(), HasSubstr(id));
}

// Two servers of one cluster that start together.
TEST_F(ClusterMarkTest, AClaimOfAnotherServerIsTakenUp) {
  const std::string id(32, 'a');
  lab_.on_remember = [&] { lab_.memory = {id, "mem://archive", false}; };
  EXPECT_TRUE(Check(lab_).ok());
  EXPECT_EQ(lab_.memory, (ClusterMemory{id, "mem://archive", true}));
  EXPECT_THAT(Mark(), HasSubstr(id));
}

TEST_F(ClusterMarkTest, EachBrokenOffClaimIsGoneOnWith) {
  for (int failing = 0;; ++failing) {
    store::FaultObjectStore top;
    FakeCluster cluster("lab");
    int calls = 0;
    top.SetOnCall([&](const std::string&) {
      if (++calls == failing + 1) top.FailCalls(1, absl::UnavailableError("away"));
    });
    ClusterMark::Verdict verdict;
    const auto check = [&] {
      return cluster.mark.Check(top, Asker::kServer, kTestTimeout, nullptr, &verdict);
    };
    const absl::Status first = check();
    EXPECT_EQ(verdict == ClusterMark::Verdict::kOwn, first.ok());
    top.SetOnCall(nullptr);
    top.FailCalls(0, absl::OkStatus());
    EXPECT_TRUE(check().ok()) << failing;
    EXPECT_THAT(GetText(top, "cluster").value_or(""), HasSubstr(cluster.memory.id));
    if (first.ok()) break;
    EXPECT_TRUE(absl::IsUnavailable(first)) << first;
  }
}

TEST_F(ClusterMarkTest, WhatIsNoneIsSaid) {
  for (const std::string& text : {std::string("?"), std::string(60, 'x'), std::string(9000, 'x')}) {
    top_.Lose("cluster");
    ASSERT_TRUE(PutText(top_, "cluster", text).ok());
    const absl::Status odd = Check(lab_);
    EXPECT_TRUE(absl::IsFailedPrecondition(odd)) << odd;
    EXPECT_THAT(std::string(odd.message()), HasSubstr("does not know"));
  }
}

// An archive that does not answer, or that refuses for another reason, has no known owner yet.
TEST_F(ClusterMarkTest, AnErrorOfACallSaysNothingOfTheOwner) {
  ASSERT_TRUE(Check(lab_).ok());
  EXPECT_EQ(verdict_, ClusterMark::Verdict::kOwn);
  top_.FailCalls(1, absl::FailedPreconditionError("the clocks differ"));
  EXPECT_TRUE(absl::IsFailedPrecondition(Check(lab_)));
  EXPECT_EQ(verdict_, ClusterMark::Verdict::kUnknown);
  EXPECT_TRUE(absl::IsFailedPrecondition(Check(other_)));
  EXPECT_EQ(verdict_, ClusterMark::Verdict::kOthers);
}

TEST_F(ClusterMarkTest, TheMemoryIsWaitedForApart) {
  EXPECT_TRUE(Check(lab_).ok());
  std::vector<bool> waits;
  lab_.failure = absl::UnavailableError("no registry");
  const absl::Status failed = lab_.mark.Check(
      top_, Asker::kServer, kTestTimeout, [&](bool is_begin) { waits.push_back(is_begin); },
      &verdict_);
  EXPECT_EQ(failed, lab_.failure);
  EXPECT_EQ(verdict_, ClusterMark::Verdict::kNoMemory);
  EXPECT_THAT(waits, ElementsAre(true, false));
}

// Else the part that could bring the object back would not look for it.
TEST(ArchiveLineTest, OnlyTheOwnObjectIsRememberedForAWhile) {
  ArchiveLine line(0, {});
  const auto is_looked_for = [&] { return line.MustCheckCluster(absl::Hours(1)); };
  line.NoteCluster(absl::OkStatus(), ClusterMark::Verdict::kLacks);
  EXPECT_TRUE(is_looked_for());
  line.NoteCluster(absl::FailedPreconditionError("skew"), ClusterMark::Verdict::kUnknown);
  EXPECT_FALSE(line.IsRefused());
  line.SetFault("cells/a", absl::FailedPreconditionError("a part"));
  line.NoteCluster(absl::FailedPreconditionError("others"), ClusterMark::Verdict::kOthers);
  EXPECT_TRUE(line.IsRefused());
  EXPECT_EQ(line.Standing().error, "others") << "it comes before parts";
  line.NoteCluster(absl::OkStatus(), ClusterMark::Verdict::kOwn);
  EXPECT_FALSE(line.IsRefused());
  EXPECT_FALSE(is_looked_for());
}

TEST_F(ClusterMarkTest, AnOperatorMayWriteItWithoutAName) {
  lab_.memory = {std::string(32, 'b'), "mem://archive", true};
  ASSERT_TRUE(PutText(top_, "cluster", "h5mirror cluster 1\n" + lab_.memory.id + "\n").ok());
  EXPECT_TRUE(Check(lab_).ok());
  EXPECT_THAT(std::string(Check(other_).message()), Not(HasSubstr(": ,")));
}

}  // namespace
}  // namespace h5mirror::archive
