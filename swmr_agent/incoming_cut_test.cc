#include "swmr_agent/incoming_cut.h"

#include <map>

#include "base/crc32c.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "swmr_agent/testing/fake_ranges.h"

namespace h5mirror::agent {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kSize = 3 * 4096;

v1::FollowFileResponse First(int64_t cut, const std::string& file_id, bool whole) {
  v1::FollowFileResponse message;
  message.mutable_snapshot()->set_cut(cut);
  message.mutable_snapshot()->set_size_bytes(kSize);
  message.set_file_id(file_id);
  message.set_whole(whole);
  message.set_last(true);
  return message;
}

void AddPage(v1::FollowFileResponse& message, uint64_t offset, char fill) {
  message.add_data_offset(offset);
  message.add_data_length(kPageBytes);
  message.mutable_data()->append(kPageBytes, fill);
  message.set_data_crc32c(Crc32c(message.data()));
}

class IncomingCutTest : public testing::Test {
 protected:
  IncomingCut::Complete Complete(const v1::FollowFileResponse& message) {
    auto taken = incoming_.Take(message);
    EXPECT_TRUE(taken.ok()) << taken.status();
    EXPECT_TRUE(taken->has_value());
    return **std::move(taken);
  }
  std::string Pages(CutImage& image) {
    std::string first_bytes;
    const auto take = [&](uint64_t, std::string_view data) {
      for (size_t at = 0; at < data.size(); at += kPageBytes) first_bytes += data[at];
      return absl::OkStatus();
    };
    EXPECT_TRUE(image.Read(0, kSize, take).ok());
    return first_bytes;
  }

  FakeRanges server_{std::string(kSize, 's')};
  IncomingCut incoming_{std::make_shared<BlockPool>(1 << 20),
                        [this](const v1::Snapshot&) { return server_.Reader(); }};
};

TEST_F(IncomingCutTest, WhatDidNotChangeIsTakenOver) {
  auto first = First(1, "a", true);
  for (uint64_t page = 0; page < 3; ++page) AddPage(first, page * kPageBytes, 'a');
  EXPECT_TRUE(Complete(first).whole);
  auto second = First(2, "a", false);
  second.add_changed_offset(kPageBytes);
  second.add_changed_length(10);
  AddPage(second, kPageBytes, 'b');
  const auto cut = Complete(second);
  EXPECT_THAT(cut.changed, ElementsAre(Extent{kPageBytes, 10}));
  EXPECT_EQ(Pages(*cut.image), "aba");
  EXPECT_TRUE(server_.asked.empty());
}

TEST_F(IncomingCutTest, OfAnotherFileNothingIsTakenOver) {
  auto first = First(1, "a", true);
  for (uint64_t page = 0; page < 3; ++page) AddPage(first, page * kPageBytes, 'a');
  Complete(first);
  const auto cut = Complete(First(2, "b", false));
  EXPECT_TRUE(cut.whole);
  EXPECT_EQ(Pages(*cut.image), "sss");
}

TEST_F(IncomingCutTest, ItResumesFromTheLastCutThatWasComplete) {
  Complete(First(4, "a", true));
  auto part = First(5, "a", false);
  part.set_last(false);
  ASSERT_TRUE(incoming_.Take(part).ok());
  EXPECT_EQ(incoming_.after_cut(), 4);
  incoming_.Abandon();
  EXPECT_EQ(incoming_.after_cut(), 4);
  EXPECT_EQ(incoming_.file_id(), "a");
  EXPECT_EQ(Complete(First(6, "a", false)).snapshot.cut(), 6);
}

TEST_F(IncomingCutTest, ACutThatBeginsAnewVoidsWhatCameBefore) {
  Complete(First(1, "a", true));
  auto part = First(2, "a", false);
  part.set_last(false);
  AddPage(part, 0, 'x');
  ASSERT_TRUE(incoming_.Take(part).ok());
  EXPECT_EQ(Pages(*Complete(First(3, "a", false)).image), "sss");
}

TEST_F(IncomingCutTest, DamagedOrSenselessMessagesAreRefused) {
  auto damaged = First(1, "a", true);
  AddPage(damaged, 0, 'x');
  damaged.set_data_crc32c(1);
  EXPECT_EQ(incoming_.Take(damaged).status().code(), absl::StatusCode::kDataLoss);
  auto beyond = First(1, "a", true);
  AddPage(beyond, kSize, 'x');
  EXPECT_THAT(incoming_.Take(beyond).status().message(), HasSubstr("not whole pages"));
  v1::FollowFileResponse headless;
  incoming_.Abandon();
  EXPECT_EQ(incoming_.Take(headless).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace h5mirror::agent
