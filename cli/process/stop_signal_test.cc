#include "cli/process/stop_signal.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

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

// Each in a process of its own: these end it.
void Work(bool may_break_off, int first_signal) {
  signal(SIGTERM, SIG_DFL);
  const StopSignal stop;
  { const BreakableWork done(1, "done"); }
  if (first_signal != 0) raise(first_signal);
  if (may_break_off) {
    const BreakableWork work(1, "broken off");
    if (first_signal == 0) raise(SIGTERM);
    while (true) pause();
  }
  sleep(2);
  _exit(7);
}

TEST(StopSignalDeathTest, WorkThatDoesNotEndIsBrokenOffAfterASignal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(Work(true, 0), ::testing::KilledBySignal(SIGTERM), "broken off");
  EXPECT_EXIT(Work(true, SIGTERM), ::testing::KilledBySignal(SIGTERM), "broken off");
}

TEST(StopSignalDeathTest, OtherWorkIsNot) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(Work(false, SIGTERM), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace h5mirror::tools
