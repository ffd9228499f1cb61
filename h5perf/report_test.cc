#include "h5perf/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"

namespace h5mirror::pperf {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A blank at the end of a line, which no source may have, is written as '_'.
std::string Blanks(std::string text) {
  for (size_t at = 0; (at = text.find("_\n", at)) != std::string::npos; ++at) text[at] = ' ';
  return text;
}

// Two iterations of 0.1 and 0.2 s for each time in the slowest process, half of that in the
// fastest; twice that with the second driver.
Results Made(const Options& options) {
  Results results;
  results.environment.prefix = "not set";
  results.environment.base = "#pio_tmp_";
  for (const int processes : options.Processes()) {
    for (const uint64_t buffer : options.Buffers()) {
      Cell cell{processes, buffer};
      for (const Api api : options.apis) {
        double factor = 1;
        for (const Driver& driver : options.drivers) {
          Lane lane{.api = api, .driver = driver};
          for (const double seconds : {0.1, 0.2}) {
            Spread spread;
            spread.min.fill(seconds * factor / 2);
            spread.max.fill(seconds * factor);
            lane.iterations.push_back(spread);
          }
          cell.lanes.push_back(lane);
          factor *= 2;
          if (api != Api::kPhdf5) break;
        }
      }
      results.cells.push_back(cell);
    }
  }
  return results;
}

std::string Text(std::vector<std::string> words) {
  words.insert(words.begin(), {"-i", "2"});
  const auto options = ParseOptions(words, 2);
  EXPECT_TRUE(options.ok()) << options.status();
  return options->json ? JsonReport(*options, Made(*options), "1.14.5")
                       : TextReport(*options, Made(*options), "1.14.5", 255);
}

TEST(TextReportTest, IsLaidOutAsTheOriginals) {
  EXPECT_EQ(Text({"-A", "posix,phdf5", "-e", "8M", "-x", "8M", "-p", "2", "-w", "-D", "t", "-d",
                  "2", "-F", "3"}),
            Blanks(R"(HDF5 Library: Version 1.14.5
rank 0: ==== Parameters ====
rank 0: IO API=posix phdf5_
rank 0: Number of files=3
rank 0: Number of datasets=2
rank 0: Number of iterations=2
rank 0: Number of processes=2:2
rank 0: Number of bytes per process per dataset=8MB
rank 0: Size of dataset(s)=16MB:16MB
rank 0: File size=32MB:32MB
rank 0: Transfer buffer size=8MB:8MB
rank 0: Block size=4MB
rank 0: Block Pattern in Dataset=Contiguous
rank 0: I/O Method for MPI and HDF5=Independent
rank 0: Geometry=1D
rank 0: VFL used for HDF5 I/O=MPI-IO driver
rank 0: Data storage method in HDF5=Contiguous
rank 0: Env HDF5_PARAPREFIX=not set
rank 0: Dumping MPI Info Object (up to 255 bytes per item):
object is MPI_INFO_NULL
rank 0: ==== End of Parameters ====

Number of processors = 2
Transfer Buffer Size: 8388608 bytes, File size: 32.00 MB
      # of files: 3, # of datasets: 2, dataset size: 16.00 MB
        IO API = POSIX
            Write (2 iteration(s)):
                Maximum Throughput: 960.00 MB/s (  0.100 s)
                Average Throughput: 640.00 MB/s (  0.150 s)
                Minimum Throughput: 480.00 MB/s (  0.200 s)
            Write Open-Close (2 iteration(s)):
                Maximum Throughput: 960.00 MB/s (  0.100 s)
                Average Throughput: 640.00 MB/s (  0.150 s)
                Minimum Throughput: 480.00 MB/s (  0.200 s)
            Write File Open (2 iteration(s)):
                Minimum Accumulated Time using 3 file(s): 0.10000 s
                Average Accumulated Time using 3 file(s): 0.15000 s
                Maximum Accumulated Time using 3 file(s): 0.20000 s
            Write File Close (2 iteration(s)):
                Minimum Accumulated Time using 3 file(s): 0.10000 s
                Average Accumulated Time using 3 file(s): 0.15000 s
                Maximum Accumulated Time using 3 file(s): 0.20000 s
        IO API = PHDF5 (w/MPI-IO driver)
            Write (2 iteration(s)):
                Maximum Throughput: 960.00 MB/s (  0.100 s)
                Average Throughput: 640.00 MB/s (  0.150 s)
                Minimum Throughput: 480.00 MB/s (  0.200 s)
            Write Open-Close (2 iteration(s)):
                Maximum Throughput: 960.00 MB/s (  0.100 s)
                Average Throughput: 640.00 MB/s (  0.150 s)
                Minimum Throughput: 480.00 MB/s (  0.200 s)
            Write File Open (2 iteration(s)):
                Minimum Accumulated Time using 3 file(s): 0.10000 s
                Average Accumulated Time using 3 file(s): 0.15000 s
                Maximum Accumulated Time using 3 file(s): 0.20000 s
            Write File Close (2 iteration(s)):
                Minimum Accumulated Time using 3 file(s): 0.10000 s
                Average Accumulated Time using 3 file(s): 0.15000 s
                Maximum Accumulated Time using 3 file(s): 0.20000 s
)"));
}

TEST(TextReportTest, SquaresShowTheirSidesAndTheBuffersShape) {
  const std::string text = Text({"-g", "-e", "8K", "-B", "1K", "-x", "4K", "-I", "-C", "-c"});
  EXPECT_THAT(text, HasSubstr("rank 0: Number of bytes per process per dataset=64MB:128MB\n"
                              "rank 0: Size of dataset(s)=8KBx8KB:16KBx16KB\n"
                              "rank 0: File size=64MB:256MB\n"
                              "rank 0: Transfer buffer size=4KBx1KB:8KBx1KB\n"
                              "rank 0: Block size=1KBx1KB\n"
                              "rank 0: Block Pattern in Dataset=Interleaved\n"
                              "rank 0: I/O Method for MPI and HDF5=Collective\n"
                              "rank 0: Geometry=2D\n"));
  EXPECT_THAT(text, HasSubstr("Transfer Buffer Size: 4096x1024 bytes, File size: 256.00 MB\n"
                              "      # of files: 1, # of datasets: 1, dataset size: "
                              "16.00x16.00 KB\n"));
  EXPECT_THAT(Text({"-g", "-e", "8K", "-B", "1K", "-x", "4K"}),
              HasSubstr("Transfer Buffer Size: 1024x4096 bytes"));
}

TEST(TextReportTest, ProcessesAreHalvedAndBuffersDoubled) {
  const std::string text = Text({"-e", "4M", "-x", "2M", "-A", "mpiio"});
  const size_t two = text.find("Number of processors = 2\n");
  const size_t one = text.find("Number of processors = 1\n");
  EXPECT_LT(two, one);
  EXPECT_NE(one, std::string::npos);
  EXPECT_NE(text.find("Transfer Buffer Size: 4194304 bytes", one), std::string::npos);
  EXPECT_EQ(text.find("Number of processors", one + 1), std::string::npos);
}

TEST(TextReportTest, DebugAddsNamesDetailsAndRawBlocks) {
  const std::string text = Text({"-A", "mpiio", "-D", "4,r", "-F", "2"});
  EXPECT_THAT(text, HasSubstr("        IO API = MPIO\nTimer details:\n"
                              "rank 0: data filename=#pio_tmp_1.mpio\n"
                              "rank 0: data filename=#pio_tmp_2.mpio\n"));
  EXPECT_THAT(text, HasSubstr("            Raw Data Write details:\n"
                              "                Iteration 1:\n"
                              "                    Minimum Time: 0.05s\n"
                              "                    Maximum Time: 0.10s\n"));
  EXPECT_THAT(text, HasSubstr("            Read file close details:\n"));
  EXPECT_THAT(Text({"-D", "2"}), Not(HasSubstr("details")));
}

TEST(TextReportTest, WriteOnlyHasNoReading) {
  EXPECT_THAT(Text({"-w", "-D", "r,t"}), Not(HasSubstr("Read")));
}

TEST(CompareReportTest, RatiosAreToTheFirstDriver) {
  const std::string text = Text({"-v", "mpio", "-v", "h5mirror:ack=none", "--compare"});
  EXPECT_THAT(text, HasSubstr("rank 0: VFL used for HDF5 I/O=h5mirror:ack=none\n"));
  EXPECT_THAT(text, HasSubstr("300.000 ms [200.000-400.000]"));
  EXPECT_THAT(text, HasSubstr("x 2.00 [2.00-2.00]"));
}

TEST(JsonReportTest, HasEachTimeOfEachCell) {
  const auto json = nlohmann::json::parse(
      Text({"--json", "-v", "mpio", "-v", "h5mirror", "--compare", "-e", "4M", "-X", "2M"}));
  EXPECT_EQ(json["parameters"]["buffers"], nlohmann::json({2 << 20}));
  EXPECT_EQ(json["parameters"]["processes"], nlohmann::json({2, 1}));
  ASSERT_EQ(json["results"].size(), 8u);
  const auto& mirrored = json["results"][3];
  EXPECT_EQ(mirrored["processes"], 2);
  EXPECT_EQ(mirrored["bytes"], 8 << 20);
  EXPECT_EQ(mirrored["driver"], "h5mirror");
  EXPECT_EQ(mirrored["phases"]["write"]["seconds"], nlohmann::json({0.2, 0.4}));
  EXPECT_EQ(mirrored["phases"]["write"]["shortest_seconds"], nlohmann::json({0.1, 0.2}));
  EXPECT_EQ(mirrored["phases"]["read"]["ratio"]["median"], 2.0);
  EXPECT_EQ(mirrored["phases"]["read_file_close"]["seconds"], nlohmann::json({0.2, 0.4}));
}

}  // namespace
}  // namespace h5mirror::pperf
