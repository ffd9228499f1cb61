#include "sync/cut_changes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using How = ChangedObject::How;

ChangedObject Object(How how, const std::string& path, const std::string& object) {
  return {how, path, object, "", {}};
}

TEST(CutChangesTextTest, NamesOneAndCountsMore) {
  CutChanges changes;
  changes.objects = {Object(How::kAdded, "/a", "group"), Object(How::kAdded, "/b", "group"),
                     Object(How::kAdded, "/b/x", "dataset"), Object(How::kRemoved, "/c", "group")};
  EXPECT_EQ(CutChangesText(changes), "+/b/x +2 groups -/c");
}

TEST(CutChangesTextTest, ShowsTheFirstThatChanged) {
  CutChanges changes;
  for (const char* path : {"/run/temp", "/run/log", "/a", "/b", "/c"}) {
    changes.objects.push_back(Object(How::kChanged, path, "dataset"));
  }
  EXPECT_EQ(CutChangesText(changes), "~/run/temp ~/run/log ~/a (2 more)");
  changes.objects.clear();
  EXPECT_EQ(CutChangesText(changes), "no object changed");
}

TEST(CutChangesTextTest, WhatIsNotAllIsToldWithBytes) {
  CutChanges changes;
  changes.changed_bytes = 3 << 20;
  changes.metadata_bytes = 4096;
  changes.note = "it takes too long";
  changes.objects = {Object(How::kChanged, "/a", "dataset")};
  EXPECT_EQ(CutChangesText(changes),
            "~/a in 3 MiB, 4 KiB of metadata (not all objects are told: it takes too long)");
}

TEST(CutChangesToJsonTest, CountsAllAndListsTheFirst) {
  CutChanges changes;
  changes.since_cut = 7;
  for (int i = 0; i < 300; ++i) {
    changes.objects.push_back(Object(How::kChanged, "/d" + std::to_string(i), "dataset"));
    changes.objects.back().what = {"shape", "data"};
  }
  const Json json = CutChangesToJson(changes);
  EXPECT_EQ(json["since_cut"], 7);
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["note"], nullptr);
  EXPECT_EQ(json["counts"]["changed"], 300);
  ASSERT_EQ(json["objects"].size(), 100);
  EXPECT_EQ(json["objects"][0].dump(),
            R"({"change":"changed","path":"/d0","object":"dataset","what":["shape","data"]})");
}

}  // namespace
}  // namespace h5mirror::tools
