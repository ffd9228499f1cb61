#include "rpc/whole_cut.h"

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/timestamp.h"

namespace h5mirror::rpc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A server that has versions of some files. Version V of a file was made in second V.
class WholeCutTest : public ::testing::Test {
 protected:
  // The next version of `name`: of cut `number` of the group, or, with 0, of none.
  v1::Version Add(const std::string& name, uint64_t number, const std::string& id = "one") {
    std::vector<v1::Version>& versions = files_[name];
    v1::Version version;
    version.set_version(static_cast<int64_t>(versions.size()) + 1);
    *version.mutable_server_time() = ToProto(absl::FromUnixSeconds(version.version()));
    if (number != 0) {
      version.mutable_group()->set_group_id(id);
      version.mutable_group()->set_number(number);
      version.mutable_group()->add_member("m.h5");
      if (name == kFirst) version.mutable_group()->add_member("/other/r.h5");
    }
    versions.push_back(version);
    return version;
  }
  absl::StatusOr<v1::Version> Find(const v1::FindVersionRequest& request) {
    const std::vector<v1::Version>& versions = files_[request.name()];
    for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
      const bool is_wanted = request.has_at_time()
                                 ? FromProto(version->server_time()) <= FromProto(request.at_time())
                                 : version->group().group_id() == request.group().group_id() &&
                                       version->group().number() == request.group().number();
      if (is_wanted) return *version;
    }
    return absl::NotFoundError("none");
  }
  absl::StatusOr<WholeCut> Newest() {
    return NewestWholeCut(kFirst, files_[kFirst].back(),
                          [this](const v1::FindVersionRequest& request) { return Find(request); });
  }
  static std::vector<int64_t> VersionsOf(const WholeCut& cut) {
    std::vector<int64_t> versions;
    for (const MemberVersion& member : cut.members) versions.push_back(member.version.version());
    return versions;
  }

  const std::string kFirst = "run/m.h5";
  const std::string kOther = "other/r.h5";
  std::map<std::string, std::vector<v1::Version>> files_;
};

TEST_F(WholeCutTest, AllMembersHaveTheNewestCut) {
  Add(kFirst, 1), Add(kOther, 1), Add(kFirst, 2), Add(kOther, 2);
  const auto cut = Newest();
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->number, 2u);
  EXPECT_THAT(VersionsOf(*cut), ElementsAre(2, 2));
  EXPECT_EQ(cut->members[1].name, kOther);
}

TEST_F(WholeCutTest, ACutThatAMemberLacksIsPassedOver) {
  Add(kFirst, 1), Add(kOther, 1), Add(kFirst, 2), Add(kFirst, 3);
  const auto cut = Newest();
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT(VersionsOf(*cut), ElementsAre(1, 1));
}

TEST_F(WholeCutTest, AMemberThatIsAheadIsReadAsOfTheCut) {
  Add(kFirst, 1), Add(kOther, 1), Add(kOther, 2), Add(kOther, 3);
  const auto cut = Newest();
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT(VersionsOf(*cut), ElementsAre(1, 1));
}

TEST_F(WholeCutTest, TheSameNumberOfAnotherOpenIsAnotherCut) {
  Add(kFirst, 1), Add(kOther, 1), Add(kFirst, 1, "two"), Add(kFirst, 2, "two");
  const auto cut = Newest();
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_THAT(VersionsOf(*cut), ElementsAre(1, 1));
}

TEST_F(WholeCutTest, VersionsOfNoCutEndTheSearch) {
  Add(kFirst, 0), Add(kOther, 0), Add(kFirst, 1);
  const absl::Status none = Newest().status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_THAT(none.message(), HasSubstr(kFirst));
}

TEST_F(WholeCutTest, AVersionThatIsAskedForByNumberNamesTheMemberThatLacksIt) {
  const v1::Version version = Add(kFirst, 4);
  const auto cut = WholeCutOf(
      kFirst, version, [this](const v1::FindVersionRequest& request) { return Find(request); });
  EXPECT_TRUE(absl::IsNotFound(cut.status()));
  EXPECT_THAT(cut.status().message(), HasSubstr("other/r.h5 has no version"));
}

TEST(MemberNameTest, NamesAreBesideTheMemberOrFromTheRoot) {
  EXPECT_EQ(MemberName("run/a.h5", "b.h5"), "run/b.h5");
  EXPECT_EQ(MemberName("a.h5", "b.h5"), "b.h5");
  EXPECT_EQ(MemberName("run/a.h5", "/x/b.h5"), "x/b.h5");
  EXPECT_EQ(FirstMember("a.h5", v1::Version()), "");
}

}  // namespace
}  // namespace h5mirror::rpc
