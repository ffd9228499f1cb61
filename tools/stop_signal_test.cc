#include "tools/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace h5mirror::tools {
namespace {

bool Is(int number, void (*handler)(int)) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == handler;
}

TEST(StopSignalTest, WhatIsIgnoredStaysSoAfterTheFirstOne) {
  signal(SIGHUP, SIG_IGN);  // As under nohup.
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_DFL);
  const StopSignal stop;
  EXPECT_FALSE(stop.came());
  EXPECT_TRUE(Is(SIGHUP, SIG_IGN));
  raise(SIGHUP);
  EXPECT_EQ(stop.number(), 0);
  raise(SIGTERM);
  EXPECT_EQ(stop.number(), SIGTERM);
  EXPECT_TRUE(stop.Wait(absl::InfiniteDuration()));
  EXPECT_TRUE(Is(SIGHUP, SIG_IGN));
  EXPECT_TRUE(Is(SIGTERM, SIG_DFL));
  EXPECT_TRUE(Is(SIGINT, SIG_DFL));
}

}  // namespace
}  // namespace h5mirror::tools
