#include "client_vfd/session/state/lifetime.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

TEST(LifetimeTest, ItIsGoneWhenItIsDoneAndItsStreamHasEnded) {
  Lifetime life;
  life.SetStreaming(true);
  life.Release();
  EXPECT_TRUE(life.released());
  EXPECT_FALSE(life.done());
  life.Finish();
  EXPECT_FALSE(life.gone());
  life.SetStreaming(false);
  EXPECT_TRUE(life.gone());
}

TEST(LifetimeTest, AnotherProgramsFileEndsItBeforeItsClose) {
  Lifetime life;
  life.Finish();
  EXPECT_TRUE(life.gone());
  EXPECT_FALSE(life.released());
}

TEST(LifetimeTest, AFollowerWaitsUntilItTakesOver) {
  Lifetime life;
  EXPECT_FALSE(life.has_follower());
  life.OnReopened();
  EXPECT_TRUE(life.has_follower());
  EXPECT_FALSE(life.superseded());
  life.TakeOver();
  EXPECT_TRUE(life.superseded());
}

TEST(LifetimeTest, WhatWasTakenOverStaysSo) {
  Lifetime life;
  life.TakeOver();
  life.OnReopened();
  EXPECT_TRUE(life.has_follower());
  EXPECT_TRUE(life.superseded());
}

}  // namespace
}  // namespace h5mirror::vfd
