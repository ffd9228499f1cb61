#include "cluster/records.h"

#include "base/strings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::cluster {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ServerRecord SomeServer() {
  return {7,
          ServerState::kDraining,
          "h:5",
          "1-2",
          {"v2:10.0.0.1:0/5", "v2:10.0.0.1:0/6"},
          {"3-4", "5-6"},
          3,
          "1.2.3",
          "https://h:6"};
}

TEST(RecordsTest, WhatIsEncodedIsDecoded) {
  EXPECT_EQ(*DecodeServer(Encode(SomeServer())), SomeServer());
  const BeatRecord beat = {3, UINT64_MAX};
  EXPECT_EQ(*DecodeBeat(Encode(beat)), beat);
  for (const CellState state :
       {CellState::kFree, CellState::kOpening, CellState::kServed, CellState::kDraining}) {
    const CellRecord cell = {state, "a", 7, 12, 40, true};
    EXPECT_EQ(*DecodeCell(Encode(cell)), cell);
  }
}

// They are compared byte for byte, by servers of several releases, and read by people.
TEST(RecordsTest, TextsStayAsTheyAre) {
  EXPECT_EQ(Encode(BeatRecord{3, 9}), R"({"epoch":3,"number":9})");
  EXPECT_EQ(Encode(CellRecord{CellState::kServed, "a", 7, 12, 40, false}),
            R"({"clean":false,"epoch":12,"owner":"a","owner_epoch":7,"seq":40,"state":"served"})");
  EXPECT_EQ(Encode(ServerRecord{1, ServerState::kUp, "h:5", "", {}}),
            R"({"addresses":[],"epoch":1,"listen":"h:5","session":"","state":"up"})");
}

TEST(RecordsTest, ATextOfAnotherFormIsQuoted) {
  for (const char* text : {"", "{", "[]", "7", "{}", R"({"epoch":"3","number":9})",
                           R"({"epoch":-3,"number":9})", R"({"epoch":3})"}) {
    const auto beat = DecodeBeat(text);
    EXPECT_TRUE(absl::IsDataLoss(beat.status())) << text;
    EXPECT_THAT(std::string(beat.status().message()), HasSubstr(text));
  }
  EXPECT_TRUE(absl::IsDataLoss(
      DecodeServer(R"({"addresses":[7],"epoch":1,"listen":"","session":"","state":"up"})")
          .status()));
  EXPECT_TRUE(absl::IsDataLoss(
      DecodeServer(R"({"addresses":[],"epoch":1,"listen":"","session":"","state":"well"})")
          .status()));
}

TEST(RecordsTest, FieldsOfALaterReleaseDoNotDisturb) {
  EXPECT_EQ(*DecodeBeat(R"({"epoch":3,"number":9,"zone":"b"})"), (BeatRecord{3, 9}));
}

// An upgrade goes server by server: an older one gives a newer one up, and claims its cells.
TEST(RecordsTest, AChangeKeepsTheFieldsOfALaterRelease) {
  const std::string server =
      R"({"addresses":[],"epoch":1,"listen":"h:5","rack":[1,{"row":2}],"session":"","state":"up"})";
  auto record = DecodeServer(server);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(Encode(*record), server);
  record->state = ServerState::kDead;
  EXPECT_THAT(Encode(*record),
              AllOf(HasSubstr(R"("state":"dead")"), HasSubstr(R"("rack":[1,{"row":2}])")));

  const std::string text =
      R"({"clean":true,"epoch":12,"owner":"a","owner_epoch":7,"seq":40,"state":"free","zone":"b"})";
  auto cell = DecodeCell(text);
  ASSERT_TRUE(cell.ok()) << cell.status();
  EXPECT_EQ(Encode(*cell), text);
  RaiseEpoch(*cell);
  EXPECT_THAT(Encode(*cell), AllOf(HasSubstr(R"("epoch":13)"), HasSubstr(R"("zone":"b")")));
}

// A release that has learned a field wins over what it once kept of it.
TEST(RecordsTest, AKnownFieldIsNotTakenFromTheRest) {
  ServerRecord record = SomeServer();
  record.later = R"({"listen":"other:1","zone":"b"})";
  EXPECT_THAT(Encode(record), AllOf(HasSubstr(R"("listen":"h:5")"), HasSubstr(R"("zone":"b")")));
}

TEST(RecordsTest, AViewHasEachKindByItsName) {
  const CellRecord cell = {CellState::kServed, "a", 7, 12, 40, true};
  auto view = DecodeView({{"s/a", Encode(SomeServer())},
                          {"b/a", Encode(BeatRecord{7, 1})},
                          {"c/", Encode(cell)},
                          {"c/x/y", Encode(cell)},
                          {"z/later", "anything"}});
  ASSERT_TRUE(view.ok()) << view.status();
  ASSERT_NE(view->FindServer("a"), nullptr);
  EXPECT_EQ(*view->FindServer("a"), SomeServer());
  EXPECT_EQ(view->beats["a"], (BeatRecord{7, 1}));
  ASSERT_NE(view->FindCell(""), nullptr);
  ASSERT_NE(view->FindCell("x/y"), nullptr);
  EXPECT_EQ(view->FindServer("b"), nullptr);
  EXPECT_EQ(view->FindCell("x"), nullptr);
  EXPECT_EQ(view->texts.size(), 5u);
  EXPECT_TRUE(absl::IsDataLoss(DecodeView({{"c/x", "no"}}).status()));
}

TEST(RecordsTest, NamesAreChecked) {
  for (const char* good : {"", "a", "a/b", "run 7/.hidden"}) {
    EXPECT_TRUE(CheckCellDirectory(good).ok()) << good;
  }
  for (const char* bad :
       {"/", "/a", "a/", "a//b", ".", "a/../b", "..", ".h5mirror", "a/.h5mirror/b"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckCellDirectory(bad))) << bad;
  }
  for (const char* good : {"a", "host-1.lab_2"}) EXPECT_TRUE(CheckServerId(good).ok()) << good;
  for (const std::string& bad :
       {std::string(), std::string("a/b"), std::string("a b"), std::string(65, 'a')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckServerId(bad))) << bad;
  }
}

TEST(RecordsTest, EachOwnershipHasAnEpochOfItsOwn) {
  CellRecord cell;
  RaiseEpoch(cell);
  EXPECT_EQ(cell.epoch, 1u);
  RaiseEpoch(cell);
  EXPECT_EQ(cell.epoch, 2u);
}

}  // namespace
}  // namespace h5mirror::cluster
