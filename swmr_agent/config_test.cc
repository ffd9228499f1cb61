#include "swmr_agent/config.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<Settings> Read(const std::string& text) {
  // Each test is a process, and many run at once.
  const std::string directory = testing::TempDir() + "/h5m-agent-" + std::to_string(getpid());
  std::filesystem::create_directory(directory);
  const std::string path = directory + "/agent.toml";
  std::ofstream(path) << text;
  absl::StatusOr<Settings> settings = ReadConfigFile(path);
  std::filesystem::remove_all(directory);
  return settings;
}

Settings Valid() {
  Settings settings;
  settings.texts["socket"] = "/run/agent.sock";
  settings.servers.push_back({.server = "127.0.0.1:1", .ca = "", .token = ""});
  return settings;
}

TEST(AgentConfigTest, TheSampleShowsTheDefaults) {
  const auto settings = ReadConfigFile(H5M_SAMPLE_CONFIG);
  ASSERT_TRUE(settings.ok()) << settings.status();
  const auto sample = MakeConfig(Merge(*settings, Valid()));
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(sample->cache_bytes, Config().cache_bytes);
  EXPECT_EQ(sample->idle, Config().idle);
  EXPECT_EQ(sample->tick_len, Config().tick_len);
  EXPECT_EQ(sample->log_level, Config().log_level);
}

TEST(AgentConfigTest, FlagsWinOverTheFile) {
  const auto file = Read(
      "cache = \"1GiB\"\nidle = \"5s\"\n[[server]]\naddress = \"a\"\n"
      "[publish]\ndirectory = \"/srv\"\nfiles = [\"x.h5\", \"d/y.h5\"]\n");
  ASSERT_TRUE(file.ok()) << file.status();
  Settings flags = Valid();
  flags.texts["idle"] = "7s";
  const auto config = MakeConfig(Merge(*file, flags));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cache_bytes, uint64_t{1} << 30);
  EXPECT_EQ(config->idle, absl::Seconds(7));
  ASSERT_EQ(config->servers.size(), 1u);
  EXPECT_EQ(config->servers[0].server, "127.0.0.1:1");
  EXPECT_EQ(config->publish_directory, "/srv");
  EXPECT_THAT(config->publish_files, ElementsAre("x.h5", "d/y.h5"));
}

TEST(AgentConfigTest, TickLenIsThatOfVfdSwmr) {
  const auto file = Read("tick_len = 4\n");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(MakeConfig(Merge(*file, Valid()))->tick_len, absl::Milliseconds(400));
  Settings flags = Valid();
  flags.texts["tick_len"] = "1s";
  EXPECT_EQ(MakeConfig(Merge(*file, flags))->tick_len, absl::Seconds(1));
  flags.texts["tick_len"] = "11";
  EXPECT_THAT(MakeConfig(flags).status().message(), HasSubstr("tenths of a second"));
  EXPECT_THAT(Read("max_lag = 7\n").status().message(), HasSubstr("h5mirrord.toml"));
}

TEST(AgentConfigTest, UnknownKeysAndWrongKindsAreNamedWithTheirLine) {
  EXPECT_THAT(Read("\ncash = \"1GiB\"\n").status().message(),
              HasSubstr("agent.toml:2: unknown key \"cash\""));
  EXPECT_THAT(Read("cache = 5\n").status().message(), HasSubstr(":1: cache: must be a text"));
  EXPECT_THAT(Read("[server]\naddress = \"a\"\n").status().message(), HasSubstr("[[server]]"));
  EXPECT_THAT(Read("[[server]]\nca = \"a\"\n").status().message(), HasSubstr("address is missing"));
}

TEST(AgentConfigTest, BadValuesAreRefusedWithWhatWouldBeRight) {
  const auto refused = [](auto change) {
    Settings settings = Valid();
    change(settings);
    return std::string(MakeConfig(settings).status().message());
  };
  EXPECT_THAT(refused([](Settings& s) { s.texts["cache"] = "1MiB"; }), HasSubstr("16 MiB..4 TiB"));
  EXPECT_THAT(refused([](Settings& s) { s.texts["socket_mode"] = "9"; }), HasSubstr("octal"));
  EXPECT_THAT(refused([](Settings& s) { s.texts["socket"] = "here"; }), HasSubstr("absolute"));
  EXPECT_THAT(refused([](Settings& s) { s.publish_files = {"a.h5"}; }), HasSubstr("a directory"));
  for (const char* name : {"/a.h5", "../a.h5", "a/../b", "a/"}) {
    EXPECT_THAT(refused([&](Settings& s) {
                  s.texts["publish"] = "/srv";
                  s.publish_files = {name};
                }),
                HasSubstr(name));
  }
}

}  // namespace
}  // namespace h5mirror::agent
