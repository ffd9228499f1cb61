#include "cli/verbs/recover_members.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

TEST(FamilyMemberNameTest, CountsOnAsHdf5NamesTheMembers) {
  EXPECT_EQ(FamilyMemberName({"run/a0.h5", "run/a1.h5"}, 2), "run/a2.h5");
  EXPECT_EQ(FamilyMemberName({"run/a0.h5", "run/a1.h5"}, 12), "run/a12.h5");
  EXPECT_EQ(FamilyMemberName({"a-00000.h5", "a-00001.h5", "a-00002.h5"}, 3), "a-00003.h5");
  EXPECT_EQ(FamilyMemberName({"a-00.h5", "a-01.h5"}, 100), "a-100.h5");
  EXPECT_EQ(FamilyMemberName({"2026/a0-x1.h5", "2026/a1-x1.h5"}, 2), "2026/a2-x1.h5");
}

TEST(FamilyMemberNameTest, OtherMembersAreNoFamily) {
  EXPECT_EQ(FamilyMemberName({"a.h5-m.h5", "a.h5-r.h5"}, 2), "");
  EXPECT_EQ(FamilyMemberName({"a1.h5"}, 1), "");
  EXPECT_EQ(FamilyMemberName({"a1.h5", "a3.h5"}, 2), "");
  EXPECT_EQ(FamilyMemberName({"a0.h5", "a1.h5", "b2.h5"}, 3), "");
  EXPECT_EQ(FamilyMemberName({"a99999999999999999999999.h5", "a9.h5"}, 2), "");
  EXPECT_EQ(FamilyMemberName({"a", "ab"}, 2), "");
}

}  // namespace
}  // namespace h5mirror::tools
