#include "h5perf_serial/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace h5mirror::perf {
namespace {

using ::testing::HasSubstr;

// The dataset after the first `writes` buffers, a row a line: 'x' where one came.
std::string Draw(const Shape& shape, uint64_t writes) {
  const Walk walk(shape, false);
  std::string picture;
  for (uint64_t row = 0; row < shape.dataset[0]; ++row) {
    picture += std::string(shape.dataset[1], '.') + "\n";
  }
  Sizes offset(2);
  for (uint64_t number = 0; number < writes; ++number) {
    walk.OffsetOf(number, offset);
    for (uint64_t row = 0; row < shape.buffer[0]; ++row) {
      picture.replace((offset[0] + row) * (shape.dataset[1] + 1) + offset[1], shape.buffer[1],
                      shape.buffer[1], 'x');
    }
  }
  return picture;
}

std::string Repeat(const std::string& line, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += line + "\n";
  return text;
}

std::string Complaint(const Shape& shape) { return std::string(CheckShape(shape).message()); }

// The two examples of the paper of 2008, after seven writes each.
TEST(WalkTest, AlongRowsAsInThePaper) {
  const Shape shape = {{16, 16}, {2, 4}, {1, 0}};
  EXPECT_EQ(Draw(shape, 7), Repeat("xxxxxxxxxxxxxxxx", 2) + Repeat("xxxxxxxxxxxx....", 2) +
                                Repeat("................", 12));
}

TEST(WalkTest, AlongColumnsAsInThePaper) {
  const Shape shape = {{16, 16}, {4, 2}, {0, 1}};
  EXPECT_EQ(Draw(shape, 7), Repeat("xxxx............", 12) + Repeat("xx..............", 4));
}

// In both, four of the seven writes extend the dataset.
TEST(ExtentTest, GrowsAsInThePaper) {
  for (const Shape& shape : {Shape{{16, 16}, {2, 4}, {1, 0}}, Shape{{16, 16}, {4, 2}, {0, 1}}}) {
    const Walk walk(shape, false);
    Extent extent(shape, shape.buffer);
    Sizes offset(2);
    int grown = 0;
    for (uint64_t number = 0; number < 7; ++number) {
      walk.OffsetOf(number, offset);
      grown += extent.Cover(offset);
    }
    EXPECT_EQ(grown, 4);
  }
}

TEST(ExtentTest, CoversABufferAnywhere) {
  const Shape shape = {{16, 16}, {2, 4}, {1, 0}};
  Extent extent(shape, shape.buffer);
  EXPECT_TRUE(extent.Cover({8, 12}));
  EXPECT_EQ(extent.size(), Sizes({10, 16}));
  EXPECT_FALSE(extent.Cover({2, 4}));
}

TEST(WalkTest, EveryOrderVisitsEachBufferOnce) {
  Shape shape = {{4, 6, 8}, {2, 3, 2}, {2, 0, 1}};
  for (const bool random : {false, true}) {
    const Walk walk(shape, random);
    std::set<Sizes> seen;
    Sizes offset(3);
    for (uint64_t number = 0; number < walk.count(); ++number) {
      walk.OffsetOf(number, offset);
      seen.insert(offset);
    }
    EXPECT_EQ(seen.size(), shape.buffer_count());
    EXPECT_EQ(*seen.rbegin(), Sizes({2, 3, 6}));
  }
}

TEST(WalkTest, RandomIsAnotherOrderAndTheSameAtEachRun) {
  const Shape shape = {{64}, {1}, {0}};
  const Walk one(shape, true), other(shape, true);
  Sizes a(1), b(1);
  int in_place = 0;
  for (uint64_t number = 0; number < 64; ++number) {
    one.OffsetOf(number, a);
    other.OffsetOf(number, b);
    EXPECT_EQ(a, b);
    in_place += a[0] == number;
  }
  EXPECT_LT(in_place, 32);
}

struct RunCase {
  Sizes dataset, buffer;
  uint64_t writes, run_bytes;
};

class RunsTest : public ::testing::TestWithParam<RunCase> {};

TEST_P(RunsTest, AreAsLongAsTheyCanBeAndCoverTheFileOnce) {
  const RunCase& wanted = GetParam();
  Shape shape = {wanted.dataset, wanted.buffer, {}};
  for (size_t d = 0; d < shape.rank(); ++d) shape.order.push_back(d);
  const Walk walk(shape, false);
  const Runs runs(shape);
  EXPECT_EQ(runs.run_bytes(), wanted.run_bytes);
  EXPECT_EQ(runs.count() * walk.count(), wanted.writes);
  std::set<uint64_t> places;
  Sizes offset(shape.rank());
  for (uint64_t number = 0; number < walk.count(); ++number) {
    walk.OffsetOf(number, offset);
    uint64_t in_buffer_wanted = 0;
    ASSERT_TRUE(runs.Visit(offset,
                           [&](uint64_t in_file, uint64_t in_buffer) {
                             EXPECT_EQ(in_buffer, in_buffer_wanted);
                             in_buffer_wanted += runs.run_bytes();
                             EXPECT_EQ(in_file % runs.run_bytes(), 0u);
                             places.insert(in_file);
                             return absl::OkStatus();
                           })
                    .ok());
  }
  EXPECT_EQ(places.size(), wanted.writes);
  EXPECT_EQ(*places.rbegin(), shape.dataset_bytes() - runs.run_bytes());
}

INSTANTIATE_TEST_SUITE_P(
    Counts, RunsTest,
    ::testing::Values(RunCase{{16, 16}, {2, 4}, 64, 4}, RunCase{{16, 16}, {4, 16}, 4, 64},
                      RunCase{{4, 6, 8}, {2, 6, 8}, 2, 96}, RunCase{{4, 6, 8}, {2, 3, 8}, 8, 24},
                      RunCase{{4, 6, 8}, {4, 6, 2}, 96, 2}, RunCase{{16}, {16}, 1, 16}));

TEST(ShapeTest, WhatDoesNotFitIsSaidOfItsDimension) {
  EXPECT_THAT(Complaint({{16, 16}, {3, 2}, {0, 1}}), HasSubstr("dimension 1"));
  EXPECT_THAT(Complaint({{16, 16}, {2, 0}, {0, 1}}), HasSubstr("transfer buffer is 0"));
  EXPECT_THAT(Complaint({{16, 0}, {2, 2}, {0, 1}}), HasSubstr("dataset is 0"));
  EXPECT_THAT(Complaint({{16, 16}, {2, 2}, {1, 1}}), HasSubstr("once"));
  EXPECT_THAT(Complaint({{uint64_t{1} << 62, 2}, {1, 1}, {0, 1}}), HasSubstr("2^63"));
  EXPECT_EQ(Complaint({{16, 16}, {2, 2}, {1, 0}}), "");
}

}  // namespace
}  // namespace h5mirror::perf
