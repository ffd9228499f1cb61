#include "server/http/event_stream.h"

#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"

namespace h5mirror::server {
namespace {

TEST(EventPlaceTest, IsReadAsItWasWritten) {
  const EventPlace place{std::string(32, 'a'), 340, 12};
  EXPECT_EQ(Format(place), StrCat(place.file_id, "-340-12"));
  EXPECT_EQ(ParseEventPlace(Format(place)), place);
}

TEST(EventPlaceTest, OthersAreNoneOfOurs) {
  const std::string id(32, 'a');
  for (const std::string& text :
       {std::string(), std::string("-"), id, id + "-1", id + "-1-x", id + "--1-2", id + "-1-2-3",
        std::string("abc-1-2"), id + "-99999999999999999999-1"}) {
    EXPECT_EQ(ParseEventPlace(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace h5mirror::server
