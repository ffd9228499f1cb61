#include "tools/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace h5mirror::tools {
namespace {

bool Is(int number, void (*handler)(int)) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == handler;
}

TEST(StopSignalsTest, WhatIsIgnoredStaysSoAfterTheFirstOne) {
  signal(SIGHUP, SIG_IGN);  // As under nohup.
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  const StopSignals signals;
  EXPECT_EQ(signals.number(), 0);
  EXPECT_TRUE(Is(SIGHUP, SIG_IGN));
  raise(SIGHUP);
  EXPECT_EQ(signals.number(), 0);
  raise(SIGTERM);
  EXPECT_EQ(signals.number(), SIGTERM);
  EXPECT_TRUE(Is(SIGHUP, SIG_IGN));
  EXPECT_TRUE(Is(SIGTERM, SIG_DFL));
  EXPECT_TRUE(Is(SIGINT, SIG_DFL));
}

}  // namespace
}  // namespace h5mirror::tools
