#include "archive/cluster_mark.h"

#include <string>
#include <utility>

#include "archive/testing/object_store_contract.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "onion_store/testing/fault_object_store.h"

namespace h5mirror::archive {
namespace {

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
              .remembered = [this] { return memory; },
              .remember =
                  [this](const ClusterMemory& before, const ClusterMemory& after) {
                    if (on_remember != nullptr) std::exchange(on_remember, nullptr)();
                    if (before != memory) return absl::AbortedError("it has changed");
                    memory = after;
                    return absl::OkStatus();
                  }}) {}

  ClusterMemory memory;
  std::function<void()> on_remember;
  ClusterMark mark;
};

class ClusterMarkTest : public testing::Test {
 protected:
  absl::Status Check(FakeCluster& cluster, Asker asker = Asker::kServer) {
    return cluster.mark.Check(top_, asker, kTestTimeout);
  }
  std::string Mark() { return GetText(top_, "cluster").value_or(""); }

  store::FaultObjectStore top_;
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

// Of a release that made none.
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
  // A place that it has never had may be empty.
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
    const absl::Status first = cluster.mark.Check(top, Asker::kServer, kTestTimeout);
    top.SetOnCall(nullptr);
    top.FailCalls(0, absl::OkStatus());
    EXPECT_TRUE(cluster.mark.Check(top, Asker::kServer, kTestTimeout).ok()) << failing;
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
    EXPECT_THAT(std::string(odd.message()), HasSubstr("none of this version"));
  }
}

TEST_F(ClusterMarkTest, AnOperatorMayWriteItWithoutAName) {
  lab_.memory = {std::string(32, 'b'), "mem://archive", true};
  ASSERT_TRUE(PutText(top_, "cluster", "h5mirror cluster 1\n" + lab_.memory.id + "\n").ok());
  EXPECT_TRUE(Check(lab_).ok());
  EXPECT_THAT(std::string(Check(other_).message()), Not(HasSubstr(": ,")));
}

}  // namespace
}  // namespace h5mirror::archive
