#include "client_vfd/plugin/modes/member_group.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class FakeMember final : public GroupMember {
 public:
  explicit FakeMember(std::string name) : name_(std::move(name)) {}

  const std::string& MirrorName() const override { return name_; }
  bool IsAttached() const override { return is_attached_; }
  bool HasChanged() const override { return has_changed_; }
  std::vector<uint64_t> DurableNumbers() const override {
    return is_attached_ ? durable_ : std::vector<uint64_t>();
  }
  void SetCut(const MemberCut* cut) override {
    if (cut != nullptr) is_attached_ = true;
    cut_ = cut != nullptr ? *cut : MemberCut();
  }
  ArmedBarrier& barrier() override { return barrier_; }
  ArmedBarrier::Request BeginBarrier() override { return barrier_.Begin(config_); }
  void AskCut(const ArmedBarrier::Request& request) override {
    has_changed_ = false;
    cuts_.push_back(cut_.number);
    kind_ = request.kind;
    comment_ = request.comment;
  }
  int AwaitCut() override { return result_; }

  void Write() { is_attached_ = has_changed_ = true; }

  const std::string name_;
  Config config_;
  ArmedBarrier barrier_;
  bool is_attached_ = false;
  bool has_changed_ = false;
  std::vector<uint64_t> durable_ = {0};
  MemberCut cut_;
  std::vector<uint64_t> cuts_;
  H5mBarrier kind_ = H5M_TICK;
  std::string comment_;
  int result_ = 0;
};

class MemberGroupTest : public ::testing::Test {
 protected:
  MemberGroupTest() {
    group_.Add(meta_);
    group_.Add(raw_);
  }
  // As HDF5's H5Fflush.
  void FlushBoth(Moment moment = Moment::kFlush) {
    EXPECT_TRUE(group_.OnFlush(meta_, moment));
    EXPECT_TRUE(group_.OnFlush(raw_, moment));
  }

  FakeMember meta_{"run/a.h5-m.h5"};
  FakeMember raw_{"run/a.h5-r.h5"};
  MemberGroup group_{{7}, [] { return int64_t{5}; }};
};

TEST_F(MemberGroupTest, AFlushCutsAllMembersAtTheLastOneUnderOneNumber) {
  raw_.Write();
  EXPECT_TRUE(group_.OnFlush(meta_, Moment::kFlush));
  EXPECT_THAT(meta_.cuts_, IsEmpty());
  EXPECT_TRUE(group_.OnFlush(raw_, Moment::kFlush));
  EXPECT_THAT(meta_.cuts_, ElementsAre(1));
  EXPECT_THAT(raw_.cuts_, ElementsAre(1));
  EXPECT_EQ(meta_.cut_.id, raw_.cut_.id);
  EXPECT_EQ(meta_.cut_.time_ns, 5);
}

TEST_F(MemberGroupTest, TheFirstMemberNamesAllAndTheOthersNameTheFirst) {
  raw_.Write();
  FlushBoth();
  EXPECT_THAT(meta_.cut_.members, ElementsAre("a.h5-m.h5", "a.h5-r.h5"));
  EXPECT_THAT(raw_.cut_.members, ElementsAre("a.h5-m.h5"));
}

TEST_F(MemberGroupTest, AFlushThatChangedNothingMakesNoCut) {
  FlushBoth();
  EXPECT_THAT(meta_.cuts_, IsEmpty());
  raw_.Write();
  FlushBoth();
  FlushBoth();
  EXPECT_THAT(raw_.cuts_, ElementsAre(1));
  EXPECT_EQ(meta_.barrier_.result(), 0);
}

TEST_F(MemberGroupTest, AFlushOfOneObjectMakesNoCutAndDisturbsNone) {
  raw_.Write();
  FlushBoth(Moment::kNone);
  EXPECT_THAT(raw_.cuts_, IsEmpty());
  FlushBoth();
  EXPECT_THAT(raw_.cuts_, ElementsAre(1));
}

TEST_F(MemberGroupTest, AMemberWhoseFlushFailedLeavesTheCutToTheNextFlush) {
  raw_.Write();
  EXPECT_TRUE(group_.OnFlush(meta_, Moment::kFlush));
  EXPECT_TRUE(group_.OnFlush(raw_, Moment::kNone));
  EXPECT_THAT(meta_.cuts_, IsEmpty());
  FlushBoth();
  EXPECT_THAT(meta_.cuts_, ElementsAre(1));
}

TEST_F(MemberGroupTest, FilesThatAreNotFlushedInTurnGoOnByThemselves) {
  raw_.Write();
  FlushBoth();
  EXPECT_TRUE(group_.OnFlush(raw_, Moment::kFlush));
  EXPECT_FALSE(group_.OnFlush(raw_, Moment::kFlush));
  EXPECT_EQ(raw_.cut_.number, 0u);
  EXPECT_FALSE(group_.OnFlush(meta_, Moment::kFlush));
  group_.BeforeSeal(raw_);
  EXPECT_EQ(raw_.cut_.number, 0u);
}

TEST_F(MemberGroupTest, ACommitOfOneMemberIsOneOfAll) {
  raw_.Write();
  meta_.barrier_.Arm(H5M_COMMIT, "calibrated");
  FlushBoth();
  EXPECT_EQ(raw_.kind_, H5M_COMMIT);
  EXPECT_EQ(raw_.comment_, "calibrated");
  EXPECT_EQ(meta_.barrier_.Finish(), 0);
}

TEST_F(MemberGroupTest, AMemberThatIsBehindIsTheResultOfAll) {
  raw_.Write();
  raw_.result_ = 1;
  FlushBoth();
  EXPECT_EQ(meta_.barrier_.result(), 1);
}

TEST_F(MemberGroupTest, TheCutTellsWhatIsWholeByMirror) {
  raw_.Write();
  FlushBoth();
  meta_.durable_ = {1, 1};
  raw_.durable_ = {1, 0};
  raw_.Write();
  FlushBoth();
  EXPECT_THAT(raw_.cut_.whole_numbers, ElementsAre(1, 0));
}

TEST_F(MemberGroupTest, TheLastCutsOfACloseHaveOneNumber) {
  raw_.Write();
  FlushBoth();
  raw_.Write();
  group_.BeforeSeal(meta_);
  group_.Remove(meta_);
  group_.BeforeSeal(raw_);
  EXPECT_EQ(meta_.cut_.number, 2u);
  EXPECT_EQ(raw_.cut_.number, 2u);
  EXPECT_THAT(raw_.cut_.members, ElementsAre("a.h5-m.h5"));
}

TEST_F(MemberGroupTest, ACloseThatChangedNothingIsOfTheCutBefore) {
  raw_.Write();
  FlushBoth();
  group_.BeforeSeal(meta_);
  group_.Remove(meta_);
  group_.BeforeSeal(raw_);
  EXPECT_EQ(meta_.cut_.number, 1u);
  EXPECT_EQ(raw_.cut_.number, 1u);
}

TEST_F(MemberGroupTest, AFileOfWhichOnlyTheFlagsWereSetIsClosedWithoutACut) {
  meta_.is_attached_ = true;
  group_.BeforeSeal(meta_);
  EXPECT_EQ(meta_.cut_.number, 0u);
}

TEST_F(MemberGroupTest, AnUntouchedFileIsClosedWithoutACut) {
  group_.BeforeSeal(meta_);
  EXPECT_FALSE(meta_.is_attached_);
}

TEST_F(MemberGroupTest, WhereAMemberWasGivenUpTheOthersMakeNoCutOfAll) {
  raw_.Write();
  group_.Remove(meta_);
  group_.BeforeSeal(raw_);
  EXPECT_EQ(raw_.cut_.number, 0u);
}

TEST_F(MemberGroupTest, AMemberThatComesLaterIsInTheNextCut) {
  raw_.Write();
  FlushBoth();
  FakeMember third("other/c.h5");
  group_.Add(third);
  third.Write();
  FlushBoth();
  EXPECT_THAT(raw_.cuts_, ElementsAre(1));
  EXPECT_TRUE(group_.OnFlush(third, Moment::kFlush));
  EXPECT_THAT(third.cuts_, ElementsAre(2));
  EXPECT_THAT(meta_.cut_.members, ElementsAre("a.h5-m.h5", "a.h5-r.h5", "/other/c.h5"));
  EXPECT_THAT(third.cut_.members, ElementsAre("/run/a.h5-m.h5"));
  group_.Remove(third);
}

TEST(MemberGroupAloneTest, AFileByItselfCutsByItself) {
  MemberGroup group({}, [] { return int64_t{0}; });
  FakeMember only("a.h5");
  group.Add(only);
  only.Write();
  EXPECT_FALSE(group.OnFlush(only, Moment::kFlush));
  group.BeforeSeal(only);
  EXPECT_EQ(only.cut_.number, 0u);
}

TEST(NameBesideTest, NamesOfOneDirectoryLeaveItOut) {
  EXPECT_EQ(NameBeside("a.h5", "b.h5"), "a.h5");
  EXPECT_EQ(NameBeside("x/a.h5", "b.h5"), "/x/a.h5");
  EXPECT_EQ(NameBeside("a.h5", "x/b.h5"), "/a.h5");
}

}  // namespace
}  // namespace h5mirror::vfd
