#include "onion_store/retention.h"

#include "gmock/gmock.h"

namespace h5mirror::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

VersionInfo At(VersionNumber number, const char* time, std::vector<std::string> tags = {}) {
  VersionInfo info;
  info.version = number;
  info.tags = std::move(tags);
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, time, &info.server_time, &error)) << error;
  return info;
}

// The retained ones of `versions` (oldest first), as number and reasons.
std::vector<std::string> Kept(const RetentionPolicy& policy, std::vector<VersionInfo> versions) {
  Retention retention(policy);
  std::vector<std::string> kept;
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    const std::vector<std::string> reasons = retention.ReasonsToKeep(*version);
    if (reasons.empty()) continue;
    std::string line = std::to_string(version->version) + ":";
    for (const std::string& reason : reasons) line += " " + reason;
    kept.push_back(line);
  }
  return kept;
}

const std::vector<VersionInfo>& Year() {
  static const std::vector<VersionInfo> versions = {
      At(1, "2024-12-29T23:59:59Z"),             // Sunday of ISO week 2024-52
      At(2, "2024-12-30T00:00:00Z"),             // Monday of ISO week 2025-01
      At(3, "2025-12-31T23:30:00Z"),             // ISO week 2026-01
      At(4, "2026-01-01T00:10:00Z", {"paper"}),  // the same week
      At(5, "2026-01-01T00:50:00Z"),             // the same hour
      At(6, "2026-01-01T01:10:00Z"),
      At(7, "2026-03-10T10:00:00Z", {"draft", "paper"}),
      At(8, "2026-03-10T10:20:00Z")};
  return versions;
}

TEST(RetentionTest, KeepsWhatEachRuleNames) {
  EXPECT_THAT(Kept({.keep_last = 3}, Year()), ElementsAre("8: newest last", "7: last", "6: last"));
  EXPECT_THAT(Kept({.keep_hourly = 3}, Year()),
              ElementsAre("8: newest hourly", "6: hourly", "5: hourly"));
  EXPECT_THAT(Kept({.keep_daily = 3}, Year()),
              ElementsAre("8: newest daily", "6: daily", "3: daily"));
  EXPECT_THAT(Kept({.keep_monthly = 9}, Year()),
              ElementsAre("8: newest monthly", "6: monthly", "3: monthly", "2: monthly"));
  EXPECT_THAT(Kept({.keep_yearly = 2}, Year()), ElementsAre("8: newest yearly", "3: yearly"));
}

TEST(RetentionTest, CountsIsoWeeksAcrossTheTurnOfTheYear) {
  EXPECT_THAT(Kept({.keep_weekly = 9}, Year()),
              ElementsAre("8: newest weekly", "6: weekly", "2: weekly", "1: weekly"));
}

TEST(RetentionTest, CountsBackFromTheNewestVersionAndNotFromNow) {
  EXPECT_THAT(Kept({.keep_within = absl::Minutes(20)}, Year()),
              ElementsAre("8: newest within", "7: within"));
  EXPECT_THAT(Kept({.keep_within = absl::Minutes(19)}, Year()), ElementsAre("8: newest within"));
}

TEST(RetentionTest, KeepsTagsByNameAndAddsReasonsUp) {
  EXPECT_THAT(Kept({.keep_last = 2, .keep_tags = {"paper", "gone"}}, Year()),
              ElementsAre("8: newest last", "7: last tag paper", "4: tag paper"));
}

TEST(RetentionTest, KeepsTheNewestWhateverThePolicy) {
  EXPECT_THAT(Kept({.keep_tags = {"gone"}}, Year()), ElementsAre("8: newest"));
  EXPECT_THAT(Kept({.keep_last = 1}, {}), IsEmpty());
}

VersionInfo OfGroup(VersionInfo info, uint8_t id, uint64_t number, uint64_t whole) {
  info.group = GroupCut{.id = {id}, .number = number, .whole_number = whole, .members = {}};
  return info;
}

TEST(RetentionTest, KeepsAGroupsCutsFromTheWholeOneOn) {
  const std::vector<VersionInfo> versions = {OfGroup(At(1, "2026-01-01T00:00:00Z"), 1, 1, 0),
                                             OfGroup(At(2, "2026-01-01T00:01:00Z"), 1, 2, 1),
                                             OfGroup(At(3, "2026-01-01T00:02:00Z"), 1, 3, 1),
                                             OfGroup(At(4, "2026-01-01T00:03:00Z"), 1, 4, 2)};
  EXPECT_THAT(Kept({.keep_last = 1}, versions),
              ElementsAre("4: newest last group", "3: group", "2: group"));
}

TEST(RetentionTest, KeepsTheGroupBeforeWhereTheNewestHasNothingWhole) {
  const std::vector<VersionInfo> versions = {OfGroup(At(1, "2026-01-01T00:00:00Z"), 1, 1, 0),
                                             OfGroup(At(2, "2026-01-01T00:01:00Z"), 1, 2, 1),
                                             OfGroup(At(3, "2026-01-01T00:02:00Z"), 1, 3, 2),
                                             OfGroup(At(4, "2026-01-01T00:03:00Z"), 2, 1, 0)};
  EXPECT_THAT(Kept({.keep_last = 1}, versions),
              ElementsAre("4: newest last group", "3: group", "2: group"));
}

TEST(RetentionTest, MembersOfOneCutAreOfOneHour) {
  VersionInfo before = OfGroup(At(2, "2026-01-01T00:59:59.999Z"), 1, 2, 2);
  VersionInfo after = OfGroup(At(2, "2026-01-01T01:00:00.001Z"), 1, 2, 2);
  before.provenance.client_time = after.provenance.client_time = before.server_time;
  const VersionInfo old = OfGroup(At(1, "2026-01-01T00:30:00Z"), 1, 1, 0);
  for (const VersionInfo& newest : {before, after}) {
    EXPECT_THAT(Kept({.keep_hourly = 2}, {old, newest}), ElementsAre("2: newest hourly group"));
  }
  // A wrong clock has no effect.
  after.provenance.client_time += absl::Hours(24);
  EXPECT_THAT(Kept({.keep_hourly = 2}, {old, after}),
              ElementsAre("2: newest hourly group", "1: hourly"));
}

TEST(RetentionTest, RefusesAPolicyThatKeepsNothingOrMeansNothing) {
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPolicy({})));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPolicy({.keep_last = 3, .keep_daily = -1})));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckPolicy({.keep_tags = {"no tag"}})));
  EXPECT_TRUE(CheckPolicy({.keep_within = absl::Seconds(1)}).ok());
}

}  // namespace
}  // namespace h5mirror::store
