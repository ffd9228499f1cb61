#include "server/door/users_by_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/testing/fake_clock.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kWait = absl::Seconds(30);

class UsersByNameTest : public ::testing::Test {
 protected:
  FakeClock clock_;
  UnixUsers users_{clock_, [](uid_t uid) -> absl::StatusOr<UnixUser> {
                     if (uid == 1000) return UnixUser{"anna", {"bl7"}};
                     return absl::NotFoundError("no name");
                   }};
  std::map<std::string, absl::StatusOr<uid_t>> known_{{"anna", 1000}};
  int asked_ = 0;
  UsersByName names_{users_, clock_, [this](const std::string& name) -> absl::StatusOr<uid_t> {
                       ++asked_;
                       const auto found = known_.find(name);
                       if (found == known_.end()) return absl::NotFoundError("no such user");
                       return found->second;
                     }};
};

TEST_F(UsersByNameTest, GroupsComeFromTheNameServiceOnce) {
  for (int i = 0; i < 3; ++i) {
    const auto found = names_.Find("anna", kWait);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->uid, 1000);
    EXPECT_EQ(found->user->name, "anna");
    EXPECT_THAT(found->user->groups, ::testing::ElementsAre("bl7"));
  }
  EXPECT_EQ(asked_, 1);
  clock_.Advance(UsersByName::kKeep);
  EXPECT_TRUE(names_.Find("anna", kWait).ok());
  EXPECT_EQ(asked_, 2);
}

TEST_F(UsersByNameTest, AnUnknownNameIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(names_.Find("bob", kWait).status()));
  known_.emplace("bob", 1000);
  EXPECT_TRUE(absl::IsNotFound(names_.Find("bob", kWait).status()));
  clock_.Advance(UsersByName::kKeepFailure);
  EXPECT_TRUE(names_.Find("bob", kWait).ok());
}

TEST_F(UsersByNameTest, WhileTheNameServiceFailsTheAnswerBeforeCounts) {
  EXPECT_TRUE(names_.Find("anna", kWait).ok());
  known_.at("anna") = absl::UnavailableError("down");
  clock_.Advance(UsersByName::kKeep);
  EXPECT_TRUE(names_.Find("anna", kWait).ok());
  clock_.Advance(UsersByName::kOutageMax);
  EXPECT_TRUE(absl::IsUnavailable(names_.Find("anna", kWait).status()));
  known_.at("anna") = uid_t{1000};
  clock_.Advance(UsersByName::kKeepFailure);
  EXPECT_TRUE(names_.Find("anna", kWait).ok());
}

TEST_F(UsersByNameTest, NamesAreBounded) {
  for (size_t i = 0; i < UsersByName::kNamesMax; ++i) {
    EXPECT_TRUE(absl::IsNotFound(names_.Find(std::to_string(i), kWait).status()));
  }
  EXPECT_TRUE(absl::IsUnavailable(names_.Find("anna", kWait).status()));
  clock_.Advance(UsersByName::kKeepFailure);
  EXPECT_TRUE(names_.Find("anna", kWait).ok());
}

TEST(LookUpUidOfUser, KnowsRootAndNotAStranger) {
  EXPECT_EQ(*LookUpUidOfUser("root"), 0);
  EXPECT_TRUE(absl::IsNotFound(LookUpUidOfUser("no such user here").status()));
}

}  // namespace
}  // namespace h5mirror::server
