#include "client_vfd/session/state/lacking_owner.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

const std::vector<std::string> kOthers = {"b", "c"};

TEST(LackingOwnerTest, ItIsBelievedWhereTheOthersSayNothingAgainstIt) {
  LackingOwner owner;
  EXPECT_FALSE(owner.IsBelieved(kOthers));
  owner.OnLacks("b");
  EXPECT_FALSE(owner.IsBelieved(kOthers)) << "c was not asked";
  owner.OnLacks("b");
  EXPECT_FALSE(owner.IsBelieved(kOthers));
  owner.OnNothing("c");
  EXPECT_TRUE(owner.IsBelieved(kOthers));
  EXPECT_EQ(owner.server(), "b");
}

TEST(LackingOwnerTest, OneThatTheListLacksIsBelievedAfterAllOfTheList) {
  LackingOwner owner;
  owner.OnLacks("d");
  owner.OnNothing("b");
  EXPECT_FALSE(owner.IsBelieved(kOthers));
  owner.OnNothing("c");
  EXPECT_TRUE(owner.IsBelieved(kOthers));
}

TEST(LackingOwnerTest, WhereNoOtherIsInTheListItIsBelieved) {
  LackingOwner owner;
  owner.OnLacks("b");
  EXPECT_TRUE(owner.IsBelieved({"b"}));
}

TEST(LackingOwnerTest, OfTwoNoneIsBelieved) {
  LackingOwner owner;
  owner.OnLacks("b");
  owner.OnNothing("c");
  owner.OnLacks("c");
  EXPECT_EQ(owner.server(), "");
  EXPECT_FALSE(owner.IsBelieved(kOthers));
}

TEST(LackingOwnerTest, AContradictionEndsIt) {
  LackingOwner owner;
  owner.OnNothing("c");
  owner.OnLacks("b");
  owner.OnOtherwise();
  owner.OnNothing("c");
  EXPECT_FALSE(owner.IsBelieved(kOthers));
  owner.OnLacks("b");
  EXPECT_FALSE(owner.IsBelieved(kOthers)) << "what was heard before counts no more";
}

}  // namespace
}  // namespace h5mirror::vfd
