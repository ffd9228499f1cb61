#include "client_vfd/plugin/config/config.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string ProblemOf(const std::string& text) {
  Config config;
  return MakeConfig(text, "", &config).value_or("");
}

class ConfigFileTest : public testing::Test {
 protected:
  ConfigFileTest() {
    std::string pattern = testing::TempDir() + "h5mirror_config_XXXXXX";
    home_ = mkdtemp(pattern.data());
    std::filesystem::create_directories(home_ + "/.config/h5mirror");
  }
  ~ConfigFileTest() override { std::filesystem::remove_all(home_); }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(home_ + "/" + name) << text;
    return home_ + "/" + name;
  }

  std::string home_;
};

TEST(ConfigTest, EmptyStringGivesDefaults) {
  Config config;
  EXPECT_EQ(MakeConfig("", "", &config), std::nullopt);
  EXPECT_EQ(config.mode, Mode::kMirror);
  EXPECT_EQ(config.ack_tick, Ack::kNone);
  EXPECT_EQ(config.ack_commit, Ack::kDurable);
  EXPECT_EQ(config.window_bytes, 64u << 20);
  EXPECT_EQ(config.TimeoutMs(), 1000u);
  EXPECT_EQ(config.on_outage, OnOutage::kDegrade);
  EXPECT_EQ(config.on_outside_change, OnOutsideChange::kAdopt);
  EXPECT_EQ(config.bandwidth_bytes_per_second, 0u);
  EXPECT_EQ(config.parallel_senders, ParallelSenders::kRank0);
}

TEST(ConfigTest, TheSendersOfAParallelFileAreChosen) {
  Config config;
  EXPECT_EQ(MakeConfig("parallel_senders=node", "", &config), std::nullopt);
  EXPECT_EQ(config.parallel_senders, ParallelSenders::kNode);
  EXPECT_EQ(MakeConfig("parallel_senders=rank0", "", &config), std::nullopt);
  EXPECT_EQ(config.parallel_senders, ParallelSenders::kRank0);
  EXPECT_THAT(ProblemOf("parallel_senders=all"), HasSubstr("parallel_senders=all"));
}

TEST(ConfigTest, WhoCannotGoOnWithoutAnAnswerWaitsLonger) {
  for (const char* text : {"mode=reader", "mode=remote", "server=embedded"}) {
    Config config;
    ASSERT_EQ(MakeConfig(text, "", &config), std::nullopt);
    EXPECT_EQ(config.TimeoutMs(), 5000u) << text;
    ASSERT_EQ(MakeConfig(std::string(text) + ";timeout=2s", "", &config), std::nullopt);
    EXPECT_EQ(config.TimeoutMs(), 2000u) << text;
  }
}

TEST(ConfigTest, WithNoLocalFileNothingGoesOnWithoutTheServer) {
  Config config;
  ASSERT_EQ(MakeConfig("mode=remote;ack=none;spool=/scratch", "", &config), std::nullopt);
  config.SettleRemote();
  EXPECT_EQ(config.ack_tick, Ack::kApplied);
  EXPECT_EQ(config.ack_commit, Ack::kApplied);
  EXPECT_EQ(config.on_outage, OnOutage::kFail);
  EXPECT_EQ(config.spool, "/scratch");
  Config mirror;
  mirror.SettleRemote();
  EXPECT_EQ(mirror.ack_tick, Ack::kNone);
  EXPECT_EQ(mirror.on_outage, OnOutage::kDegrade);
}

TEST(ConfigTest, WhatIsDoneInAnOutageAndForHowLong) {
  const auto outage_of = [](const std::string& value) {
    Config config;
    EXPECT_EQ(MakeConfig("on_outage=" + value, "", &config), std::nullopt) << value;
    return std::pair(config.on_outage, config.outage_wait_ms);
  };
  EXPECT_EQ(outage_of("degrade").first, OnOutage::kDegrade);
  EXPECT_EQ(outage_of("fail").first, OnOutage::kFail);
  EXPECT_EQ(outage_of("wait"), std::pair(OnOutage::kWait, 30'000u));
  EXPECT_EQ(outage_of("wait=90s"), std::pair(OnOutage::kWait, 90'000u));
  EXPECT_EQ(outage_of("wait:2min"), std::pair(OnOutage::kWait, 120'000u));
  for (const char* bad : {"", "wait=", "wait=soon", "waits", "wait 3s", "fail=1s"}) {
    EXPECT_THAT(ProblemOf(std::string("on_outage=") + bad), HasSubstr("on_outage=")) << bad;
  }
}

TEST(ConfigTest, BandwidthIsARate) {
  const auto rate_of = [](const std::string& value) {
    Config config;
    EXPECT_EQ(MakeConfig("bandwidth=" + value, "", &config), std::nullopt) << value;
    return config.bandwidth_bytes_per_second;
  };
  EXPECT_EQ(rate_of("50MB/s"), 50'000'000u);
  EXPECT_EQ(rate_of("10MiB/s"), 10u << 20);
  EXPECT_EQ(rate_of("1.5MB"), 1'500'000u);
  EXPECT_EQ(rate_of("0"), 0u);
  for (const char* bad : {"", "fast", "50Mbit/s", "10", "-1MB/s", "1e30"}) {
    EXPECT_THAT(ProblemOf(std::string("bandwidth=") + bad), HasSubstr("bandwidth=")) << bad;
  }
}

TEST(ConfigTest, MetadataIsHeldWhereThatIsAskedFor) {
  Config config;
  EXPECT_EQ(config.metadata, MetadataPlace::kFile);
  EXPECT_EQ(config.metadata_memory_bytes, 256u << 20);
  EXPECT_EQ(MakeConfig("mode=off;metadata=memory;metadata_memory=64KiB", "", &config),
            std::nullopt);
  EXPECT_EQ(config.metadata, MetadataPlace::kMemory);
  EXPECT_EQ(config.metadata_memory_bytes, 64u << 10);
  EXPECT_THAT(ProblemOf("metadata=disk"), HasSubstr("metadata=disk: must be one of: file, memory"));
  EXPECT_THAT(ProblemOf("metadata_memory=1"), HasSubstr("must be 4096 to"));
}

TEST(ConfigTest, ReadsKeysAndIgnoresSpaces) {
  Config config;
  EXPECT_EQ(
      MakeConfig(" server = node7:7447 ; timeout=500ms;window=2MiB;; under=log;", "", &config),
      std::nullopt);
  EXPECT_EQ(config.server, "node7:7447");
  EXPECT_EQ(config.timeout_ms, 500u);
  EXPECT_EQ(config.window_bytes, 2u << 20);
  EXPECT_EQ(config.under, UnderDriver::kLog);
}

TEST(ConfigTest, AckSetsBothAndLaterKeysWin) {
  Config config;
  EXPECT_EQ(MakeConfig("ack=applied;ack_commit=none", "", &config), std::nullopt);
  EXPECT_EQ(config.ack_tick, Ack::kApplied);
  EXPECT_EQ(config.ack_commit, Ack::kNone);
}

TEST(ConfigTest, UnknownKeyIsNamedAndKnownOnesAreListed) {
  EXPECT_THAT(ProblemOf("sever=a"),
              AllOf(HasSubstr("unknown key 'sever'"), HasSubstr("server, mode, under, root")));
}

TEST(ConfigTest, FieldsOfVfdSwmrThatAreReadElsewhereAreToldWhere) {
  EXPECT_THAT(ProblemOf("tick_len=4"),
              HasSubstr("unknown key 'tick_len'; it is of VFD SWMR: set it in"));
  EXPECT_THAT(ProblemOf("md_file_path=/m"), HasSubstr("'md_file_path'; known are"));
}

TEST(ConfigTest, WrongValuesNameKeyValueAndWhatIsRight) {
  EXPECT_THAT(ProblemOf("ack=soon"), HasSubstr("ack=soon: must be one of: none, applied, durable"));
  EXPECT_THAT(ProblemOf("comment=\xfc"), HasSubstr("must be UTF-8"));
  EXPECT_THAT(ProblemOf("page_size=1000"), HasSubstr("page_size=1000: must be a power of two"));
  EXPECT_THAT(ProblemOf("window=12"), HasSubstr("1048576"));
  EXPECT_THAT(ProblemOf("timeout=fast"), HasSubstr("such as 5s"));
  EXPECT_THAT(ProblemOf("root=data"), HasSubstr("absolute path"));
  EXPECT_THAT(ProblemOf("mode=far"), HasSubstr("must be one of: mirror, remote, reader, off"));
}

TEST(ConfigTest, TextWithoutEqualsIsRefused) {
  EXPECT_THAT(ProblemOf("localhost:7447"), HasSubstr("'localhost:7447' is not key=value"));
}

TEST_F(ConfigFileTest, FileIsReadAndListsAreJoined) {
  const std::string path =
      Write("c.toml", "server = 'a:1'\nexclude = ['*.tmp', '/scratch/*']\ntimeout = 2\n");
  Config config;
  EXPECT_EQ(MakeConfig("@" + path, "", &config), std::nullopt);
  EXPECT_EQ(config.server, "a:1");
  EXPECT_THAT(config.exclude, ElementsAre("*.tmp", "/scratch/*"));
  EXPECT_EQ(config.timeout_ms, 2000u);
}

TEST(ConfigTest, ServerMayBeAList) {
  Config config;
  EXPECT_EQ(MakeConfig("server= a:1 , b:2;ack=none", "", &config), std::nullopt);
  EXPECT_THAT(config.Servers(), testing::ElementsAre("a:1", "b:2"));
  EXPECT_FALSE(config.IsEmbedded());
}

TEST(ConfigTest, OneServerOrNoneIsAListOfOne) {
  Config config;
  EXPECT_THAT(config.Servers(), testing::ElementsAre(""));
  EXPECT_EQ(MakeConfig("server=a:1", "", &config), std::nullopt);
  EXPECT_THAT(config.Servers(), testing::ElementsAre("a:1"));
}

TEST(ConfigTest, ABadListOfServersIsAProblem) {
  EXPECT_THAT(ProblemOf("server=a,,b"), AllOf(HasSubstr("server=a,,b"), HasSubstr("missing")));
  EXPECT_THAT(ProblemOf("server=a,embedded"), HasSubstr("embedded"));
  EXPECT_THAT(ProblemOf("server=a,a:7447"), HasSubstr("twice"));
}

TEST_F(ConfigFileTest, ServersMayBeATomlArray) {
  Config config;
  const std::string path = Write("two.toml", "server = ['a:1', 'b:2']\n");
  EXPECT_EQ(MakeConfig("@" + path, home_, &config), std::nullopt);
  EXPECT_THAT(config.Servers(), testing::ElementsAre("a:1", "b:2"));
}

TEST_F(ConfigFileTest, MissingNamedFileIsAProblem) {
  EXPECT_THAT(ProblemOf("@" + home_ + "/none.toml"), HasSubstr("none.toml: No such file"));
}

TEST_F(ConfigFileTest, SyntaxErrorNamesFileAndLine) {
  EXPECT_THAT(ProblemOf("@" + Write("bad.toml", "server = 'a'\nroot =\n")),
              HasSubstr("bad.toml:2"));
}

TEST_F(ConfigFileTest, UnknownKeyInAFileNamesTheFile) {
  EXPECT_THAT(ProblemOf("@" + Write("typo.toml", "severs = 'a'\n")),
              AllOf(HasSubstr("typo.toml"), HasSubstr("unknown key 'severs'")));
}

TEST_F(ConfigFileTest, ANumberInAListIsNoPattern) {
  EXPECT_THAT(ProblemOf("@" + Write("list.toml", "server = 'a'\ninclude = [1]\n")),
              AllOf(HasSubstr("list.toml: 'include'"), HasSubstr("a list of strings")));
}

TEST_F(ConfigFileTest, HomeFileGivesDefaultsThatTheStringOverrides) {
  Write(".config/h5mirror/client.toml", "server = 'home:1'\nack = 'none'\n");
  Config config;
  EXPECT_EQ(MakeConfig("ack=applied", home_, &config), std::nullopt);
  EXPECT_EQ(config.server, "home:1");
  EXPECT_EQ(config.ack_commit, Ack::kApplied);
}

}  // namespace
}  // namespace h5mirror::vfd
