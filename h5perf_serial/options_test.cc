#include "h5perf_serial/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <sstream>

#include "h5perf_serial/run_perf.h"

namespace h5mirror::perf {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

std::string Complaint(const Words& words) {
  const auto options = ParseOptions(words);
  return options.ok() ? "" : std::string(options.status().message());
}

TEST(OptionsTest, DefaultsAreTheOriginals) {
  const Options options = *ParseOptions({});
  EXPECT_THAT(options.shape.dataset, ElementsAre(100, 200));
  EXPECT_THAT(options.shape.buffer, ElementsAre(10, 20));
  EXPECT_THAT(options.shape.order, ElementsAre(0, 1));
  EXPECT_TRUE(options.posix && options.hdf5);
  EXPECT_EQ(options.drivers.at(0).name, "sec2");
  EXPECT_EQ(options.iterations, 1);
}

TEST(OptionsTest, RankIsThatOfAnyListGiven) {
  const Options options = *ParseOptions({"-x", "5,5,5"});
  EXPECT_THAT(options.shape.dataset, ElementsAre(100, 200, 300));
  EXPECT_THAT(options.shape.order, ElementsAre(0, 1, 2));
  EXPECT_THAT(*ParseOptions({"--chunk"})->settings.chunk, ElementsAre(10, 20));
  EXPECT_THAT(*ParseOptions({"--chunk=4K,1"})->settings.chunk, ElementsAre(4096, 1));
}

TEST(OptionsTest, EachRankMismatchNamesBothLists) {
  EXPECT_THAT(Complaint({"-e", "16", "-x", "4,4"}),
              AllOf(HasSubstr("-e has 1"), HasSubstr("-x has 2")));
  EXPECT_THAT(Complaint({"-x", "4,4", "-r", "1"}),
              AllOf(HasSubstr("-x has 2"), HasSubstr("-r has 1")));
  EXPECT_THAT(Complaint({"-r", "1,2", "-c", "4"}),
              AllOf(HasSubstr("-r has 2"), HasSubstr("-c has 1")));
  EXPECT_THAT(Complaint({"-e", "16,16", "-c", "4"}),
              AllOf(HasSubstr("-e has 2"), HasSubstr("-c has 1")));
}

TEST(OptionsTest, OrderMustBeAPermutation) {
  EXPECT_THAT(Complaint({"-r", "1,3"}), HasSubstr("dimension 3"));
  EXPECT_THAT(Complaint({"-r", "0,1"}), HasSubstr("dimension 0"));
  EXPECT_THAT(Complaint({"-r", "2,2"}), HasSubstr("once"));
}

TEST(OptionsTest, WordsThatAreWrongAreNamed) {
  EXPECT_THAT(Complaint({"-A", "posix,mpi"}), HasSubstr("'mpi'"));
  EXPECT_THAT(Complaint({"-D", "5"}), HasSubstr("'5'"));
  EXPECT_THAT(Complaint({"-q"}), HasSubstr("unknown option"));
  EXPECT_THAT(Complaint({"--no-such"}), HasSubstr("--no-such"));
  EXPECT_THAT(Complaint({"-e"}), HasSubstr("wants an argument"));
  EXPECT_THAT(Complaint({"foo"}), HasSubstr("'foo' is no option"));
  EXPECT_THAT(Complaint({"-e", "16X", "-x", "4"}), HasSubstr("'16X'"));
  EXPECT_THAT(Complaint({"--libver", "v2"}), HasSubstr("'v2'"));
  EXPECT_THAT(Complaint({"--percentiles=0"}), HasSubstr("--percentiles"));
}

TEST(OptionsTest, WhatDoesNotGoTogetherIsRefused) {
  EXPECT_THAT(Complaint({"-t"}), HasSubstr("-t wants -c"));
  EXPECT_THAT(Complaint({"--deflate", "6"}), HasSubstr("want -c"));
  EXPECT_THAT(Complaint({"-b", "1M"}), HasSubstr("-b wants -G"));
  EXPECT_THAT(Complaint({"-b", "1K", "-G", "4K"}), HasSubstr("must hold a page"));
  EXPECT_THAT(Complaint({"-v", "sec2", "-v", "core"}), HasSubstr("--compare"));
  EXPECT_THAT(Complaint({"--compare"}), HasSubstr("two drivers"));
}

TEST(OptionsTest, TheOrderOfOptionsDoesNotMatter) {
  const Options one =
      *ParseOptions({"-r", "2,1", "-c", "4,4", "-e", "16,16", "-x", "2,4", "-t", "-w"});
  const Options other =
      *ParseOptions({"-w", "-t", "-x", "2,4", "-e", "16,16", "-c", "4,4", "-r", "2,1"});
  EXPECT_EQ(one.shape.order, other.shape.order);
  EXPECT_EQ(one.settings.chunk, other.settings.chunk);
  EXPECT_TRUE(other.settings.extendable && other.write_only);
}

TEST(OptionsTest, FewerThanOneIterationIsOne) {
  EXPECT_EQ(ParseOptions({"-i", "0"})->iterations, 1);
  EXPECT_EQ(ParseOptions({"-i", "-3"})->iterations, 1);
  EXPECT_FALSE(ParseOptions({"-i", "many"}).ok());
}

TEST(OptionsTest, LongFormsAndShortOnesAreTheSame) {
  const Options options =
      *ParseOptions({"--write-only", "--api=HDF5", "--num-bytes", "16", "--min-xfer-size=4",
                     "--order=1", "--align=4K", "--threshold=1K", "--page-size=4K",
                     "--page-buffer-size=64K", "--file-driver=CORE"});
  EXPECT_TRUE(options.write_only);
  EXPECT_FALSE(options.posix);
  EXPECT_EQ(options.settings.alignment, 4096u);
  EXPECT_EQ(options.settings.page_buffer_bytes, 65536u);
  EXPECT_EQ(options.drivers.at(0).name, "core");
}

TEST(DriverTest, CommasBeforeKeysSeparateThem) {
  const Driver driver = *ParseDriver("h5mirror:server=a:1,b:2,ack=none,include=*.h5,*.nc");
  EXPECT_EQ(driver.name, "h5mirror");
  EXPECT_EQ(driver.config, "server=a:1,b:2;ack=none;include=*.h5,*.nc");
}

TEST(DriverTest, AReportHasNoToken) {
  const Driver driver = *ParseDriver("h5mirror:token=geheim,ack=none");
  EXPECT_EQ(driver.config, "token=geheim;ack=none");
  EXPECT_EQ(driver.label, "h5mirror:token=***;ack=none");
  EXPECT_EQ(ParseDriver("h5mirror:token=@/a")->label, "h5mirror:token=@/a");
}

TEST(DriverTest, MigIsMetadataInMemory) {
  for (const char* name : {"mig", "metadata=memory", "MIG"}) {
    EXPECT_EQ(ParseDriver(name)->name, "h5mirror");
    EXPECT_EQ(ParseDriver(name)->config, "mode=off;metadata=memory");
  }
  EXPECT_FALSE(ParseDriver("sec2:x=y").ok());
}

TEST(RunPerfTest, HelpIsNoFailure) {
  std::ostringstream out, err;
  EXPECT_EQ(RunPerf({"-h"}, out, err, nullptr), 0);
  EXPECT_THAT(out.str(), HasSubstr("--compare"));
  EXPECT_EQ(err.str(), "");
}

TEST(RunPerfTest, ADriverThatIsNotThereIsNamedAndNothingReported) {
  std::ostringstream out, err;
  EXPECT_EQ(RunPerf({"-v", "bogus"}, out, err, nullptr), 1);
  EXPECT_EQ(out.str(), "");
  EXPECT_THAT(err.str(), HasSubstr("no file driver bogus"));
}

TEST(RunPerfTest, AReportThatCannotBeWrittenIsAFailure) {
  std::ostringstream out, err;
  EXPECT_EQ(RunPerf({"-o", "/no/such/dir/report", "-A", "posix"}, out, err, nullptr), 1);
  EXPECT_THAT(err.str(), HasSubstr("/no/such/dir/report"));
}

}  // namespace
}  // namespace h5mirror::perf
