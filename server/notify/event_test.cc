#include "server/notify/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Event DiskLow() {
  Event event{.kind = EventKind::kDiskLow, .text = "1 GiB is free"};
  event.numbers = {{"free_bytes", 1 << 30}, {"min_free_bytes", int64_t{1} << 40}};
  event.id = "00ff";
  event.time = absl::FromUnixMillis(1'800'000'000'123);
  event.repeated = 2;
  event.last_time = absl::FromUnixMillis(1'800'000'060'000);
  return event;
}

TEST(EventTest, JsonHasAllFieldsInTheirOrder) {
  EXPECT_EQ(ToJson(DiskLow(), "storage1"),
            R"({"id":"00ff","event":"disk_low","time":"2027-01-15T08:00:00.123Z",)"
            R"("host":"storage1","file":null,"text":"1 GiB is free",)"
            R"("numbers":{"free_bytes":1073741824,"min_free_bytes":1099511627776},)"
            R"("repeated":2,"last_time":"2027-01-15T08:01:00.000Z"})");
}

TEST(EventTest, AnyNameMakesJsonOnOneLine) {
  Event event{
      .kind = EventKind::kWriterLost, .file = "a\"\n\\b\xff\xe2\x82\xac.h5", .text = "\x01"};
  const std::string json = ToJson(event, "h");
  EXPECT_THAT(json, Not(HasSubstr("\n")));
  const auto parsed = nlohmann::json::parse(json);
  EXPECT_EQ(parsed["file"], "a\"\n\\b\xef\xbf\xbd\xe2\x82\xac.h5");
  EXPECT_EQ(parsed["text"], "\x01");
}

TEST(EventTest, HeadlineIsOneLineThatIsSafeToPrint) {
  const Event event{.kind = EventKind::kDiverged, .file = "a\nBcc: x@y\x1b[2J.h5"};
  EXPECT_EQ(Headline(event, "s1"), "h5mirror on s1: diverged: a\\x0aBcc: x@y\\x1b[2J.h5");
  EXPECT_EQ(Headline(DiskLow(), "s1"), "h5mirror on s1: disk_low");
}

}  // namespace
}  // namespace h5mirror::server
