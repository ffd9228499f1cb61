#include "client_vfd/connector/tick_clock.h"

#include <gtest/gtest.h>

namespace h5mirror::vol {
namespace {

TEST(TickClockTest, AFileThatDoesNotChangeIsNeverDue) {
  const TickClock clock(100);
  EXPECT_FALSE(clock.IsDue(1'000'000));
}

TEST(TickClockTest, TheFirstChangeCounts) {
  TickClock clock(100);
  clock.OnChange(50);
  clock.OnChange(149);
  EXPECT_FALSE(clock.IsDue(149));
  EXPECT_TRUE(clock.IsDue(150));
}

TEST(TickClockTest, AFlushEndsIt) {
  TickClock clock(100);
  clock.OnChange(50);
  clock.OnFlushed(150, 151);
  EXPECT_FALSE(clock.IsDue(1'000'000));
  clock.OnChange(200);
  EXPECT_EQ(clock.due(), 300);
}

TEST(TickClockTest, SoDoesAFlushOfTheProgramAndTheRestStays) {
  TickClock clock(100);
  clock.OnChange(0);
  clock.OnFlushed(100, 160);
  clock.OnChange(170);
  clock.OnProgramFlush();
  EXPECT_FALSE(clock.IsDue(1'000'000));
  clock.OnChange(180);
  EXPECT_EQ(clock.due(), 160 + TickClock::kRest * 60);
}

TEST(TickClockTest, FlushesTakeATwentiethOfTheTime) {
  TickClock clock(100);
  clock.OnChange(0);
  clock.OnFlushed(100, 160);
  clock.OnChange(170);
  EXPECT_EQ(clock.due(), 160 + TickClock::kRest * 60);
}

TEST(TickClockTest, APutOffFlushIsDueAgain) {
  TickClock clock(100);
  clock.OnChange(0);
  clock.OnPutOff(110);
  EXPECT_FALSE(clock.IsDue(209));
  EXPECT_TRUE(clock.IsDue(210));
}

TEST(TickClockTest, AfterAFailureThereIsNoFlush) {
  TickClock clock(100);
  clock.OnChange(0);
  clock.OnFailed();
  clock.OnChange(200);
  EXPECT_FALSE(clock.IsDue(TickClock::kNever - 1));
}

TEST(TickClockTest, WithoutATickThereIsNone) {
  TickClock clock(0);
  clock.OnChange(1);
  EXPECT_EQ(clock.due(), TickClock::kNever);
}

}  // namespace
}  // namespace h5mirror::vol
