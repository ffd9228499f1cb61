#include "server/settings/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/door/refusal_log.h"
#include "server/settings/secret_file.h"
#include "server/testing/test_directory.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(LoggingTest, WhatAStrangerWroteStaysOnItsLine) {
  const auto before = spdlog::default_logger();
  const TestDirectory directory;
  Config config;
  config.log_file = directory.path() / "log";
  ASSERT_TRUE(StartLogging(config).ok());
  spdlog::info("session start: user={}", "eve\n2026-11-03T14:00:00 info: all is well\033[2J");
  spdlog::warn("\u202e{}", "gnp.5h");
  RefusalLog log;
  for (int i = 0; i < 10; ++i) {
    log.Warn("GetServer", "ipv4:10.0.0.7:5", absl::UnauthenticatedError("no\ntoken"),
             absl::Hours(1) + i * absl::Milliseconds(200));
  }
  spdlog::default_logger()->flush();
  const std::string text = *ReadSmallFile(config.log_file);
  spdlog::set_default_logger(before);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4) << text;
  EXPECT_THAT(text, HasSubstr("user=eve\\x0a2026-11-03T14:00:00 info: all is well\\x1b[2J\n"));
  EXPECT_THAT(text, HasSubstr("warning: \\xe2\\x80\\xaegnp.5h\n"));
  EXPECT_THAT(text, HasSubstr("GetServer from ipv4:10.0.0.7:5: UNAUTHENTICATED: no\\x0atoken\n"));
  EXPECT_THAT(text, HasSubstr("no\\x0atoken (and 4 more since the last such line)\n"));
  EXPECT_THAT(text, Not(HasSubstr("\033")));
}

}  // namespace
}  // namespace h5mirror::server
