// The cuts of groups that clients send.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

v1::GroupCut Good() {
  v1::GroupCut group;
  group.set_group_id(std::string(16, 'g'));
  group.set_number(2);
  group.set_whole_number(1);
  group.add_member("m.h5");
  group.add_member("/other/r.h5");
  return group;
}

std::string WhyRefused(const v1::GroupCut& group) {
  const absl::Status status = CheckGroup(group);
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(GroupCutTest, WhatIsStoredComesBack) {
  EXPECT_TRUE(CheckGroup(Good()).ok());
  EXPECT_EQ(ToProto(FromProto(Good())).SerializeAsString(), Good().SerializeAsString());
}

TEST(GroupCutTest, NumbersAndTheIdMustBeThere) {
  v1::GroupCut group = Good();
  group.set_group_id("short");
  EXPECT_THAT(WhyRefused(group), HasSubstr("barrier.group.group_id has 5 bytes"));
  group = Good();
  group.set_number(0);
  EXPECT_THAT(WhyRefused(group), HasSubstr("barrier.group.number 0"));
  group.set_number(uint64_t{1} << 63);
  EXPECT_THAT(WhyRefused(group), HasSubstr("barrier.group.number 9223372036854775808"));
  group = Good();
  group.set_whole_number(3);
  EXPECT_THAT(WhyRefused(group), HasSubstr("whole_number 3 is beyond number 2"));
}

TEST(GroupCutTest, MembersAreBounded) {
  v1::GroupCut group = Good();
  group.clear_member();
  EXPECT_THAT(WhyRefused(group), HasSubstr("has 0 names"));
  for (int i = 0; i < 4097; ++i) group.add_member("r.h5");
  EXPECT_THAT(WhyRefused(group), HasSubstr("has 4097 names"));
  group.clear_member();
  for (int i = 0; i < 65; ++i) group.add_member(std::string(4096, 'r'));
  EXPECT_THAT(WhyRefused(group), HasSubstr("has 65 names of 266240 bytes"));
  group = Good();
  group.add_member("");
  EXPECT_THAT(WhyRefused(group), HasSubstr("that no file has"));
  group = Good();
  group.add_member(std::string("a\0b", 3));
  EXPECT_THAT(WhyRefused(group), HasSubstr("that no file has"));
}

}  // namespace
}  // namespace h5mirror::server
