#include "client_vfd/plugin/config/name_rules.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

TEST(NameRulesTest, WithoutARootTheNameIsHostAndPath) {
  EXPECT_EQ(MirrorName(Config(), "/data/run.h5", "node7"), "node7/data/run.h5");
}

TEST(NameRulesTest, WithARootTheNameIsRelativeAndOutsidePassesThrough) {
  Config config;
  config.root = "/no/such/data";
  EXPECT_EQ(MirrorName(config, "/no/such/data/a/run.h5", "node7"), "a/run.h5");
  EXPECT_EQ(MirrorName(config, "/no/such/database/run.h5", "node7"), std::nullopt);
  EXPECT_EQ(MirrorName(config, "/elsewhere/run.h5", "node7"), std::nullopt);
}

TEST(NameRulesTest, RootOfTheFileSystemTakesEverything) {
  Config config;
  config.root = "/";
  EXPECT_EQ(MirrorName(config, "/data/run.h5", "node7"), "data/run.h5");
}

TEST(NameRulesTest, WithModeOffNothingIsMirroredAndTheRulesStillTellFilesApart) {
  Config config;
  config.mode = Mode::kOff;
  config.root = "/data";
  config.exclude = {"*.tmp"};
  EXPECT_EQ(MirrorName(config, "/data/run.h5", "node7"), std::nullopt);
  EXPECT_EQ(PathUnderRoot(config, "/data/run.h5"), "run.h5");
  EXPECT_EQ(PathUnderRoot(config, "/data/run.tmp"), std::nullopt);
  EXPECT_EQ(PathUnderRoot(config, "/elsewhere/run.h5"), std::nullopt);
}

TEST(NameRulesTest, NameOverridesTheRule) {
  Config config;
  config.name = "best.h5";
  EXPECT_EQ(MirrorName(config, "/data/run.h5", "node7"), "best.h5");
}

TEST(NameRulesTest, ExcludeWinsOverInclude) {
  Config config;
  config.include = {"*.h5"};
  config.exclude = {"/scratch/*"};
  EXPECT_TRUE(MirrorName(config, "/data/run.h5", "n").has_value());
  EXPECT_FALSE(MirrorName(config, "/data/run.nc", "n").has_value());
  EXPECT_FALSE(MirrorName(config, "/scratch/deep/run.h5", "n").has_value());
}

TEST(NameRulesTest, WhatIsLeftOutHasAReason) {
  Config config;
  config.root = "/no/such/data";
  config.include = {"*.h5", "*.nc"};
  config.exclude = {"*.tmp.h5", "/no/such/data/scratch/*"};
  EXPECT_EQ(WhyLeftOut(config, "/no/such/data/run.h5"), "");
  EXPECT_EQ(WhyLeftOut(config, "/no/such/data/run.dat"), "include=*.h5,*.nc does not take it");
  EXPECT_EQ(WhyLeftOut(config, "/no/such/data/run.tmp.h5"), "exclude=*.tmp.h5 leaves it out");
  EXPECT_EQ(WhyLeftOut(config, "/tmp/run.h5"), "it lies outside of root=/no/such/data");
  config.mode = Mode::kOff;
  EXPECT_EQ(WhyLeftOut(config, "/no/such/data/run.h5"), "mode=off mirrors nothing");
}

TEST(NameRulesTest, GlobWithoutSlashMatchesTheBaseName) {
  EXPECT_TRUE(MatchesGlob("run*.h5", "/data/run7.h5"));
  EXPECT_FALSE(MatchesGlob("data*", "/data/run7.h5"));
}

TEST(NameRulesTest, OffMirrorsNothing) {
  Config config;
  config.mode = Mode::kOff;
  EXPECT_EQ(MirrorName(config, "/data/run.h5", "n"), std::nullopt);
}

}  // namespace
}  // namespace h5mirror::vfd
