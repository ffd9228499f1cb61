#include "h5perf/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "h5perf/help.h"

namespace h5mirror::pperf {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Words = std::vector<std::string>;

std::string Complaint(const Words& words, int ranks = 4) {
  const auto options = ParseOptions(words, ranks);
  return options.ok() ? "" : std::string(options.status().message());
}

TEST(OptionsTest, DefaultsAreTheOriginals) {
  const Options options = *ParseOptions({}, 6);
  EXPECT_THAT(options.apis, ElementsAre(Api::kPosix, Api::kMpiio, Api::kPhdf5));
  EXPECT_EQ(options.workload.bytes_per_process, 256u << 10);
  EXPECT_EQ(options.workload.block, 128u << 10);
  EXPECT_THAT(options.Buffers(), ElementsAre(128 << 10, 256 << 10));
  EXPECT_THAT(options.Processes(), ElementsAre(6, 3, 1));
  EXPECT_EQ(options.workload.datasets, 1u);
  EXPECT_EQ(options.workload.files, 1u);
  EXPECT_EQ(options.iterations, 1);
  EXPECT_EQ(options.alignment, 1u);
  EXPECT_EQ(options.threshold, 1u);
  EXPECT_EQ(options.drivers.at(0).name, "mpio");
  const Workload square = ParseOptions({"-g"}, 2)->workload;
  EXPECT_EQ(square.bytes_per_process, 8u << 10);
  EXPECT_EQ(square.block, 4u << 10);
}

TEST(OptionsTest, ZeroIsTheDefault) {
  const Options options = *ParseOptions({"-e", "0", "-B", "0", "-x", "0", "-X", "0"}, 1);
  EXPECT_EQ(options.workload.bytes_per_process, 256u << 10);
  EXPECT_THAT(options.Buffers(), ElementsAre(128 << 10, 256 << 10));
}

TEST(OptionsTest, SizesAreCappedAtAProcesssBytes) {
  const Options options = *ParseOptions({"-e", "64K", "-x", "1M", "-X", "2M", "-B", "128K"}, 1);
  EXPECT_THAT(options.Buffers(), ElementsAre(64 << 10));
  EXPECT_EQ(options.workload.block, 64u << 10);
  // In two dimensions a buffer may reach over the parts of several processes.
  EXPECT_THAT(ParseOptions({"-g", "-e", "4", "-B", "2", "-X", "8", "-p", "2"}, 2)->Buffers(),
              ElementsAre(2, 4, 8));
}

TEST(OptionsTest, EachOptionHasItsLongForm) {
  const Options options = *ParseOptions({"--align=4K",
                                         "--api",
                                         "PHDF5,posix",
                                         "--block-size=1K",
                                         "--chunk",
                                         "--collective",
                                         "--num-dsets=3",
                                         "--debug",
                                         "2,r,t,v",
                                         "--num-bytes=8K",
                                         "--num-files=2",
                                         "--geometry",
                                         "--num-iterations=5",
                                         "--interleaved",
                                         "--output=report",
                                         "--min-num-processes=2",
                                         "--max-num-processes=4",
                                         "--threshold=1K",
                                         "--driver=mpio",
                                         "--write-only",
                                         "--min-xfer-size=2K",
                                         "--max-xfer-size=4K",
                                         "--json"},
                                        4);
  EXPECT_EQ(options.alignment, 4096u);
  EXPECT_EQ(options.threshold, 1024u);
  EXPECT_THAT(options.apis, ElementsAre(Api::kPosix, Api::kPhdf5));
  const Workload& work = options.workload;
  EXPECT_EQ(work.block, 1024u);
  EXPECT_EQ(work.datasets, 3u);
  EXPECT_EQ(work.files, 2u);
  EXPECT_EQ(work.bytes_per_process, 8192u);
  EXPECT_TRUE(work.chunked && work.collective && work.two_d && work.interleaved);
  EXPECT_TRUE(options.debug.raw && options.debug.seconds && options.debug.verify);
  EXPECT_EQ(options.debug.level, 2);
  EXPECT_EQ(options.iterations, 5);
  EXPECT_EQ(options.output, "report");
  EXPECT_THAT(options.Processes(), ElementsAre(4, 2));
  EXPECT_THAT(options.Buffers(), ElementsAre(2048, 4096));
  EXPECT_TRUE(options.write_only && options.json);
}

TEST(OptionsTest, WordsThatAreWrongAreNamed) {
  EXPECT_THAT(Complaint({"-A", "posix,hdf5"}), AllOf(HasSubstr("'hdf5'"), HasSubstr("phdf5")));
  EXPECT_THAT(Complaint({"-D", "5"}), HasSubstr("'5'"));
  EXPECT_THAT(Complaint({"-e", "16X"}), AllOf(HasSubstr("-e"), HasSubstr("'16X'")));
  EXPECT_THAT(Complaint({"-d", "-1"}), AllOf(HasSubstr("-d"), HasSubstr("-1")));
  EXPECT_THAT(Complaint({"-F", "many"}), AllOf(HasSubstr("-F"), HasSubstr("'many'")));
  EXPECT_THAT(Complaint({"-i", "x"}), AllOf(HasSubstr("-i"), HasSubstr("'x'")));
  EXPECT_THAT(Complaint({"-n"}), HasSubstr("unknown option -n"));
  EXPECT_THAT(Complaint({"--num-dset=3"}), testing::Eq(""));  // Abbreviated, as getopt has it.
  EXPECT_THAT(Complaint({"--colective"}), HasSubstr("did you mean --collective"));
  EXPECT_THAT(Complaint({"-x"}), HasSubstr("-x wants an argument"));
  EXPECT_THAT(Complaint({"foo"}), HasSubstr("'foo' is no option"));
  EXPECT_THAT(Complaint({"-a", "0"}), HasSubstr("-a is 0"));
}

TEST(OptionsTest, ProcessesAreThoseThatMpiStarted) {
  EXPECT_THAT(Complaint({"-P", "8"}),
              AllOf(HasSubstr("-P 8"), HasSubstr("the 4 process(es)"), HasSubstr("mpirun -n")));
  EXPECT_THAT(Complaint({"-p", "5"}), HasSubstr("-p 5"));
  EXPECT_THAT(ParseOptions({"-P", "0", "-p", "-3"}, 4)->Processes(), ElementsAre(1));
  EXPECT_THAT(ParseOptions({"-P", "2", "-p", "3"}, 4)->Processes(), ElementsAre(2));
}

TEST(OptionsTest, WhatDoesNotDivideIsRefused) {
  EXPECT_THAT(Complaint({"-e", "256K", "-B", "96K"}),
              AllOf(HasSubstr("-B 98304"), HasSubstr("multiple of the block")));
  EXPECT_THAT(Complaint({"-e", "100", "-B", "30", "-x", "30", "-X", "30"}),
              AllOf(HasSubstr("-e 100"), HasSubstr("(30)"), HasSubstr("-x and -X")));
  // One of a sweep.
  EXPECT_THAT(Complaint({"-e", "96", "-B", "16", "-x", "32", "-X", "96"}), HasSubstr("(64)"));
  // The dataset's side divides, the part of a process does not.
  EXPECT_THAT(Complaint({"-g", "-e", "6", "-B", "4", "-x", "4", "-X", "4", "-p", "2"}, 2),
              AllOf(HasSubstr("-e 6"), HasSubstr("-B 4")));
  EXPECT_THAT(Complaint({"-e", "1"}), HasSubstr("at least 2"));
  EXPECT_THAT(Complaint({"-e", "4G", "-x", "2G", "-X", "2G", "-B", "2G"}), HasSubstr("2G - 1"));
  EXPECT_THAT(Complaint({"-g", "-e", "4G", "-x", "1M", "-X", "1M", "-B", "1M"}), HasSubstr("2^63"));
}

TEST(OptionsTest, DriversOfOthersAreComparedAndOnlyThere) {
  EXPECT_THAT(Complaint({"-v", "mpio", "-v", "h5mirror"}), HasSubstr("--compare"));
  EXPECT_THAT(Complaint({"--compare"}), HasSubstr("two drivers"));
  EXPECT_THAT(Complaint({"--compare", "-v", "mpio", "-v", "h5mirror", "-A", "mpiio"}),
              HasSubstr("phdf5 in -A"));
  EXPECT_THAT(Complaint({"-v", "mpio:x=1"}), HasSubstr("HDF5_MPI_INFO"));
  const Options options = *ParseOptions({"--compare", "-v", "mpio", "-v", "h5mirror:a=1,b=2"}, 1);
  EXPECT_EQ(options.drivers.at(1).config, "a=1;b=2");
}

TEST(HelpTest, NamesEachOption) {
  for (const char* name : {"-a,", "-A,", "-B,", "-c,", "-C,", "-d,",    "-D,",       "-e,",
                           "-F,", "-g,", "-h,", "-i,", "-I,", "-o,",    "-p,",       "-P,",
                           "-T,", "-v,", "-w,", "-x,", "-X,", "--json", "--compare", "--version"}) {
    EXPECT_THAT(HelpText(), HasSubstr(std::string("  ") + name));
  }
}

}  // namespace
}  // namespace h5mirror::pperf
