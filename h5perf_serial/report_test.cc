#include "h5perf_serial/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "nlohmann/json.hpp"

namespace h5mirror::perf {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A blank at the end of a line, which no source may have, is written as '_'.
std::string Blanks(std::string text) {
  for (size_t at = 0; (at = text.find("_\n", at)) != std::string::npos; ++at) text[at] = ' ';
  return text;
}

// Two iterations of 16 MB: 0.1 and 0.2 s for each time, twice that with the second driver.
Results Made(const Options& options) {
  Results results;
  const auto add = [&](const Lane& lane, double factor) {
    results.lanes.push_back(lane);
    for (const double seconds : {0.1, 0.2}) {
      PhaseTimes times;
      times.fill(seconds * factor);
      results.lanes.back().iterations.push_back(times);
    }
  };
  if (options.posix) add(Lane{.file_name = "#sio_tmp.posix"}, 1);
  double factor = 1;
  for (const Driver& driver : options.drivers) {
    if (options.hdf5)
      add(Lane{.hdf5 = true, .driver = driver, .file_name = "#sio_tmp.h5"}, factor++);
  }
  return results;
}

std::string Text(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"-e", "4K,4K", "-x", "512,256", "-i", "2"};
  words.insert(words.end(), more.begin(), more.end());
  unsetenv("HDF5_PREFIX");
  const auto options = ParseOptions(words);
  EXPECT_TRUE(options.ok()) << options.status();
  return options->format == Format::kJson  ? JsonReport(*options, Made(*options))
         : options->format == Format::kCsv ? CsvReport(*options, Made(*options))
                                           : TextReport(*options, Made(*options));
}

TEST(TextReportTest, IsLaidOutAsTheOriginals) {
  EXPECT_EQ(Text({"-c", "4K,256", "-w", "-D", "t"}),
            "HDF5 Library: Version " + LibraryVersion() + Blanks(R"(
==== Parameters ====
IO API=posix hdf5_
Number of iterations=2
Dataset size=4KB 4KB_
Transfer buffer size=512 256_
Page Aggregation Disabled
Dimension access order=1 2_
HDF5 data storage method=Chunked
HDF5 chunk size=4KB 256_
HDF5 dataset dimensions=Fixed
HDF5 file driver=sec2
Env HDF5_PREFIX=not set
==== End of Parameters ====

Transfer Buffer Size (bytes): 131072
File Size(MB): 16.00
        IO API = POSIX
            Write (2 iteration(s)):
                Maximum Throughput: 160.00 MB/s (  0.100 s)
                Average Throughput: 106.67 MB/s (  0.150 s)
                Minimum Throughput:  80.00 MB/s (  0.200 s)
            Write Open-Close (2 iteration(s)):
                Maximum Throughput: 160.00 MB/s (  0.100 s)
                Average Throughput: 106.67 MB/s (  0.150 s)
                Minimum Throughput:  80.00 MB/s (  0.200 s)
        IO API = HDF5
            Write (2 iteration(s)):
                Maximum Throughput: 160.00 MB/s (  0.100 s)
                Average Throughput: 106.67 MB/s (  0.150 s)
                Minimum Throughput:  80.00 MB/s (  0.200 s)
            Write Open-Close (2 iteration(s)):
                Maximum Throughput: 160.00 MB/s (  0.100 s)
                Average Throughput: 106.67 MB/s (  0.150 s)
                Minimum Throughput:  80.00 MB/s (  0.200 s)
)"));
}

TEST(TextReportTest, HdfLinesAreOnlyThereWhereHdf5Is) {
  EXPECT_THAT(Text({"-A", "posix"}), Not(HasSubstr("HDF5 file driver")));
  EXPECT_THAT(Text({"-A", "hdf5"}), Not(HasSubstr("IO API = POSIX")));
}

TEST(TextReportTest, DebugAddsNamesDetailsAndRawBlocks) {
  EXPECT_THAT(Text({"-A", "posix", "-w", "-D", "4,r"}), HasSubstr(R"(        IO API = POSIX
Timer details:
data filename=#sio_tmp.posix
data filename=#sio_tmp.posix
            Raw Data Write details:
                Iteration 1:
                    Minimum Time: 0.10s
                    Maximum Time: 0.10s
                Iteration 2:
                    Minimum Time: 0.20s
                    Maximum Time: 0.20s
            Raw Data Write (2 iteration(s)):
                Maximum Throughput: 160.00 MB/s
)"));
  EXPECT_THAT(Text({"-D", "2"}), Not(HasSubstr("details")));
}

TEST(TextReportTest, SettingsAndPercentilesHaveLinesOfTheirOwn) {
  const std::string text =
      Text({"-a", "4K", "-T", "1K", "-G", "4K", "-b", "64K", "-c", "4K,256", "--deflate", "6",
            "--shuffle", "--sieve", "1M", "--percentiles=50,99.9"});
  EXPECT_THAT(text, HasSubstr("Page Aggregation Enabled. Page size = 4096\n"
                              "Page Buffering Enabled. Page Buffer size = 65536\n"));
  EXPECT_THAT(text, HasSubstr("HDF5 alignment=4KB\nHDF5 alignment threshold=1KB\n"
                              "HDF5 filters=shuffle deflate(6) \nHDF5 sieve buffer size=1MB\n"));
  EXPECT_THAT(text, HasSubstr("                99.9th Percentile:  80.00 MB/s\n"));
}

TEST(CompareReportTest, RatiosAreToTheFirstDriver) {
  const std::string text = Text({"-v", "sec2", "-v", "core", "--compare", "-w"});
  EXPECT_THAT(text, HasSubstr("core         53.33 MB/s  300.000 ms [200.000-400.000]"));
  EXPECT_THAT(text, HasSubstr("x 2.00 [2.00-2.00]"));
}

TEST(JsonReportTest, HasEachTimeAndItsRatio) {
  const auto json =
      nlohmann::json::parse(Text({"-v", "sec2", "-v", "core", "--compare", "--json"}));
  EXPECT_EQ(json["parameters"]["dataset"], nlohmann::json({4096, 4096}));
  EXPECT_EQ(json["results"].size(), 3u);
  const auto& core = json["results"][2];
  EXPECT_EQ(core["driver"], "core");
  EXPECT_EQ(core["phases"]["write"]["seconds"], nlohmann::json({0.2, 0.4}));
  EXPECT_EQ(core["phases"]["raw_read"]["ratio"]["median"], 2.0);
  EXPECT_EQ(core["phases"]["read"]["p50_s"], 0.2);
}

TEST(CsvReportTest, HasALineForEachTimeOfEachIteration) {
  const std::string text = Text({"--csv", "-w", "-v", "h5mirror:server=a,b"});
  EXPECT_THAT(text, HasSubstr("api,driver,iteration,phase,seconds,mb_s\n"
                              "posix,,1,raw_write,0.100000000,160.000\n"));
  EXPECT_THAT(text,
              HasSubstr("hdf5,\"h5mirror:server=a,b\",2,write_open_close,0.200000000,80.000\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 2 * 2 * 3);
}

}  // namespace
}  // namespace h5mirror::perf
