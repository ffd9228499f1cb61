#include "client_vfd/session/open_groups.h"

#include <memory>

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

std::shared_ptr<const OpenGroup> GroupAt(int64_t version) {
  rpc::WholeCut cut;
  for (const char* name : {"m.h5", "r.h5"}) {
    cut.members.push_back({name, v1::Version()});
    cut.members.back().version.set_version(version);
  }
  auto group = std::make_shared<const OpenGroup>("node7", cut);
  OpenGroups::Get().Add(group);
  return group;
}

TEST(OpenGroupsTest, AMemberIsOpenedAtTheCutOfTheFirstOne) {
  const auto group = GroupAt(3);
  EXPECT_EQ(OpenGroups::Get().VersionOf("node7", "r.h5"), 3);
  EXPECT_TRUE(OpenGroups::Get().HasFirst("node7", "m.h5"));
  EXPECT_EQ(OpenGroups::Get().VersionOf("node8", "r.h5"), 0);
}

TEST(OpenGroupsTest, TheFirstMemberItselfLooksForTheNewestCut) {
  const auto group = GroupAt(3);
  EXPECT_EQ(OpenGroups::Get().VersionOf("node7", "m.h5"), 0);
}

TEST(OpenGroupsTest, OfTwoOpensTheNewerOneCounts) {
  const auto older = GroupAt(3);
  auto newer = GroupAt(5);
  EXPECT_EQ(OpenGroups::Get().VersionOf("node7", "r.h5"), 5);
  newer.reset();
  EXPECT_EQ(OpenGroups::Get().VersionOf("node7", "r.h5"), 3);
}

TEST(OpenGroupsTest, WithTheFirstMemberClosedItIsAFileByItself) {
  GroupAt(3);
  EXPECT_EQ(OpenGroups::Get().VersionOf("node7", "r.h5"), 0);
  EXPECT_FALSE(OpenGroups::Get().HasFirst("node7", "m.h5"));
}

}  // namespace
}  // namespace h5mirror::vfd
