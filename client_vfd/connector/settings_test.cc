#include "client_vfd/connector/settings.h"

#include <gtest/gtest.h>

namespace h5mirror::vol {
namespace {

TEST(SettingsTest, NothingIsTheDefaults) {
  std::string problem;
  EXPECT_EQ(ParseSettings("", &problem), Settings{});
  EXPECT_EQ(ParseSettings(" ; ", &problem), Settings{});
}

TEST(SettingsTest, KeysAreRead) {
  std::string problem;
  EXPECT_EQ(ParseSettings("tick=100ms; drivers=all", &problem),
            (Settings{.tick_ns = 100'000'000, .all_drivers = true}));
  EXPECT_EQ(ParseSettings("tick=2s", &problem), (Settings{.tick_ns = 2'000'000'000}));
  EXPECT_EQ(ParseSettings("tick=off;drivers=default", &problem), Settings{});
}

TEST(SettingsTest, WhatIsWrongIsNamed) {
  std::string problem;
  EXPECT_EQ(ParseSettings("tick=1ms", &problem), std::nullopt);
  EXPECT_EQ(problem, "tick=1ms: must be 10 ms to 86400 s");
  EXPECT_EQ(ParseSettings("tock=1s", &problem), std::nullopt);
  EXPECT_EQ(problem, "tock=1s: unknown key; known are: tick, drivers");
  EXPECT_EQ(ParseSettings("drivers=some", &problem), std::nullopt);
  EXPECT_EQ(problem, "drivers=some: must be one of: all, default");
}

TEST(SettingsTest, TheTextIsReadAgain) {
  std::string problem;
  for (const char* text : {"", "tick=100ms", "drivers=all", "tick=2000ms;drivers=all"}) {
    const std::optional<Settings> settings = ParseSettings(text, &problem);
    ASSERT_TRUE(settings);
    EXPECT_EQ(SettingsText(*settings), text);
  }
}

}  // namespace
}  // namespace h5mirror::vol
