// A stream whose rights are looked at by a worker: before its file is looked up, and once it is
// open.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/calls/stream_call.h"

namespace h5mirror::server {
namespace {

using ::testing::ElementsAre;

class LateStreamSourceTest : public testing::Test {
 protected:
  class Source final : public StreamSource {
   public:
    explicit Source(std::vector<std::string>& steps) : steps_(steps) {}
    absl::StatusOr<Next> Make(const StreamTurn&, grpc::ByteBuffer&) override {
      steps_.emplace_back("message");
      return Next::kMessage;
    }

   private:
    std::vector<std::string>& steps_;
  };

  std::function<absl::Status()> Step(const std::string& name, const absl::Status& result) {
    return [this, name, result] {
      steps_.push_back(name);
      return result;
    };
  }
  LateStreamSource Made(const absl::Status& before, const absl::Status& after) {
    return LateStreamSource({Step("before", before), Step("after", after)},
                            [this]() -> absl::StatusOr<std::unique_ptr<StreamSource>> {
                              steps_.emplace_back("made");
                              return std::make_unique<Source>(steps_);
                            });
  }
  absl::StatusOr<StreamSource::Next> Next(LateStreamSource& source) {
    grpc::ByteBuffer message;
    return source.Make({.part_bytes = 4096, .is_cancelled = is_cancelled_}, message);
  }

  std::atomic<bool> is_cancelled_ = false;
  std::vector<std::string> steps_;
};

TEST_F(LateStreamSourceTest, IsCheckedBeforeItIsMadeAndOnceItsFileIsOpen) {
  LateStreamSource source = Made(absl::OkStatus(), absl::OkStatus());
  EXPECT_EQ(*Next(source), StreamSource::Next::kMessage);
  EXPECT_EQ(*Next(source), StreamSource::Next::kMessage);
  EXPECT_THAT(steps_, ElementsAre("before", "made", "message", "after", "message"));
}

TEST_F(LateStreamSourceTest, WithoutTheRightNothingIsOpened) {
  LateStreamSource source = Made(absl::NotFoundError("no"), absl::OkStatus());
  EXPECT_TRUE(absl::IsNotFound(Next(source).status()));
  EXPECT_THAT(steps_, ElementsAre("before"));
}

TEST_F(LateStreamSourceTest, WhatWasOpenedOfAnothersFileIsNotSent) {
  LateStreamSource source = Made(absl::OkStatus(), absl::NotFoundError("another's by now"));
  EXPECT_TRUE(absl::IsNotFound(Next(source).status()));
}

}  // namespace
}  // namespace h5mirror::server
