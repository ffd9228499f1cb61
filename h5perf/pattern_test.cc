#include "h5perf/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace h5mirror::pperf {
namespace {

using ::testing::ElementsAre;

Workload Line(uint64_t bytes, uint64_t block, bool interleaved) {
  Workload work;
  work.bytes_per_process = bytes;
  work.block = block;
  work.interleaved = interleaved;
  return work;
}

Workload Square(uint64_t bytes, uint64_t block, bool interleaved, bool chunked = false) {
  Workload work = Line(bytes, block, interleaved);
  work.two_d = true;
  work.chunked = chunked;
  return work;
}

// Of each byte of a file the process that writes it by `transfers` of each, "1" the first one.
std::string Drawn(const Workload& work, uint64_t buffer, int processes, uint64_t transfers) {
  const Pattern any(work, buffer, processes, 0);
  std::string file(any.dataset_bytes() * work.datasets, '-');
  for (int rank = 0; rank < processes; ++rank) {
    const Pattern pattern(work, buffer, processes, rank);
    for (uint64_t dataset = 0; dataset < work.datasets; ++dataset) {
      for (uint64_t number = 0; number < std::min(transfers, pattern.count()); ++number) {
        const Pieces pieces = pattern.PiecesOf(dataset, number);
        EXPECT_EQ(pieces.bytes * pieces.count, pattern.transfer_bytes());
        for (uint64_t i = 0; i < pieces.count * pieces.bytes; ++i) {
          const uint64_t at = pieces.offset + i / pieces.bytes * pieces.stride + i % pieces.bytes;
          EXPECT_LT(at, file.size());
          EXPECT_EQ(file.at(at), '-') << "byte " << at << " is written twice";
          file.at(at) = static_cast<char>('1' + rank);
        }
      }
    }
  }
  return file;
}

// The same of HDF5's selections, row by row.
std::string DrawnSlabs(const Workload& work, uint64_t buffer, int processes, uint64_t transfers) {
  const Pattern any(work, buffer, processes, 0);
  std::string dataset(any.dataset_bytes(), '-');
  for (int rank = 0; rank < processes; ++rank) {
    const Pattern pattern(work, buffer, processes, rank);
    const Slab slab = pattern.FirstSlab();
    const uint64_t columns = work.two_d ? pattern.side() : 1;
    const uint64_t across = work.two_d ? slab.count[1] * slab.block[1] : 1;
    for (uint64_t number = 0; number < std::min(transfers, pattern.count()); ++number) {
      const auto move = pattern.MoveOf(number);
      for (uint64_t i = 0; i < slab.count[0] * slab.block[0] * across; ++i) {
        const auto place = [&](size_t d, uint64_t n) {
          return slab.start[d] + move[d] + n / slab.block[d] * slab.stride[d] + n % slab.block[d];
        };
        const uint64_t row = place(0, i / across);
        const uint64_t column = work.two_d ? place(1, i % across) : 0;
        EXPECT_EQ(dataset.at(row * columns + column), '-');
        dataset.at(row * columns + column) = static_cast<char>('1' + rank);
      }
    }
  }
  return dataset;
}

TEST(PatternTest, TheExampleOfTheManualPage) {
  // 3 processes, 8 bytes each, buffers of 4, blocks of 1: the first transfer, and all.
  EXPECT_EQ(Drawn(Line(8, 1, false), 4, 3, 1), "1111----2222----3333----");
  EXPECT_EQ(Drawn(Line(8, 1, true), 4, 3, 1), "123123123123------------");
  EXPECT_EQ(Drawn(Line(8, 1, false), 4, 3, 2), "111111112222222233333333");
  EXPECT_EQ(Drawn(Line(8, 1, true), 4, 3, 2), "123123123123123123123123");
}

TEST(PatternTest, BlocksOfSeveralBytesStayTogether) {
  EXPECT_EQ(Drawn(Line(8, 2, true), 4, 2, 1), "11221122--------");
  EXPECT_EQ(Drawn(Line(8, 4, true), 4, 2, 2), "1111222211112222");
}

TEST(PatternTest, DatasetsFollowEachOther) {
  Workload work = Line(2, 1, true);
  work.datasets = 2;
  EXPECT_EQ(Drawn(work, 2, 2, 1), "12121212");
}

TEST(PatternTest, SquaresInPartsOfTheirOwn) {
  // A side of 4 by 2 processes: rows 0 and 1 are of the first one.
  EXPECT_EQ(Drawn(Square(2, 2, false), 2, 2, 1),
            "11--"
            "11--"
            "22--"
            "22--");
  EXPECT_EQ(Drawn(Square(2, 2, false), 2, 2, 2),
            "1111"
            "1111"
            "2222"
            "2222");
  EXPECT_EQ(Drawn(Square(2, 1, false), 4, 2, 1),
            "1111"
            "----"
            "2222"
            "----");
}

TEST(PatternTest, SquaresInterleaved) {
  EXPECT_EQ(Drawn(Square(2, 1, true), 2, 2, 1),
            "12--"
            "12--"
            "----"
            "----");
  EXPECT_EQ(Drawn(Square(2, 1, true), 2, 2, 4),
            "1212"
            "1212"
            "1212"
            "1212");
  EXPECT_EQ(Drawn(Square(2, 2, true), 2, 2, 2),
            "1122"
            "1122"
            "1122"
            "1122");
}

TEST(PatternTest, ChunksOfSquaresAreStoredOneAfterTheOther) {
  EXPECT_EQ(Drawn(Square(2, 2, false, true), 2, 2, 1),
            "1111"
            "----"
            "2222"
            "----");
  EXPECT_EQ(Drawn(Square(2, 2, true, true), 2, 2, 1),
            "1111"
            "2222"
            "----"
            "----");
  EXPECT_EQ(Drawn(Square(2, 1, true, true), 2, 2, 1),
            "12--"
            "12--"
            "----"
            "----");
}

TEST(PatternTest, EachByteIsWrittenOnceByWhateverIsAskedFor) {
  for (const int processes : {1, 2, 3, 4}) {
    for (const bool interleaved : {false, true}) {
      for (const uint64_t block : {1, 2, 4}) {
        for (const uint64_t buffer : {4, 8}) {
          const Workload line = Line(16, block, interleaved);
          EXPECT_EQ(Drawn(line, buffer, processes, 1000).find('-'), std::string::npos);
          EXPECT_EQ(DrawnSlabs(line, buffer, processes, 1000),
                    Drawn(line, buffer, processes, 1000));
          for (const bool chunked : {false, true}) {
            const Workload square = Square(8, block, interleaved, chunked);
            EXPECT_EQ(Drawn(square, buffer, processes, 1000).find('-'), std::string::npos);
          }
          const Workload square = Square(8, block, interleaved);
          EXPECT_EQ(DrawnSlabs(square, buffer, processes, 1000),
                    Drawn(square, buffer, processes, 1000));
          EXPECT_EQ(DrawnSlabs(square, buffer, processes, 2), Drawn(square, buffer, processes, 2));
        }
      }
    }
  }
}

TEST(PatternTest, BuffersHaveTheShapeOfTheirSelection) {
  EXPECT_THAT(Pattern(Line(8, 2, false), 4, 1, 0).BufferShape(), ElementsAre(4, 1));
  EXPECT_THAT(Pattern(Square(8, 2, false), 4, 1, 0).BufferShape(), ElementsAre(2, 4));
  EXPECT_THAT(Pattern(Square(8, 2, true), 4, 1, 0).BufferShape(), ElementsAre(4, 2));
}

}  // namespace
}  // namespace h5mirror::pperf
