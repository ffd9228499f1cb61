#include "h5diff/version_walk.h"

#include <atomic>
#include <memory>
#include <vector>

#include "cli/testing/fake_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using testing::ElementsAre;

// Three versions of one file on a server that counts the calls.
class VersionWalkTest : public testing::Test {
 protected:
  VersionWalkTest() {
    rpc::ClientSettings settings;
    settings.server = server_.address();
    client_ = *rpc::Client::Connect(*rpc::ResolveClientOptionsIn(settings, {}), absl::Seconds(20));
    for (const char* content : {"one", "two", "three"}) server_.AddVersion("x.h5", content);
    server_.On("ListVersions", [this] {
      ++calls_;
      return grpc::Status::OK;
    });
  }
  // Takes versions until it has `wanted`; 0: all.
  absl::StatusOr<WalkEnd> Walk(size_t wanted, int page_size) {
    v1::ListVersionsRequest request;
    request.set_name("x.h5");
    request.set_page_size(page_size);
    return ForEachVersion(*client_, request, [&](const v1::Version& version) {
      taken_.push_back(version.version());
      return taken_.size() != wanted;
    });
  }

  std::atomic<int> calls_{0};
  FakeServer server_;
  std::unique_ptr<rpc::Client> client_;
  std::vector<int64_t> taken_;
};

TEST_F(VersionWalkTest, WithoutAPageSizeACallGivesThemAll) {
  EXPECT_EQ(*Walk(0, 0), WalkEnd::kOldest);
  EXPECT_THAT(taken_, ElementsAre(3, 2, 1));
  EXPECT_EQ(calls_, 1);
}

TEST_F(VersionWalkTest, ACallGivesNoMoreThanThePageSize) {
  EXPECT_EQ(*Walk(0, 1), WalkEnd::kOldest);
  EXPECT_THAT(taken_, ElementsAre(3, 2, 1));
  EXPECT_EQ(calls_, 3);
}

TEST_F(VersionWalkTest, AWalkThatStopsAsksForNoMore) {
  EXPECT_EQ(*Walk(1, 1), WalkEnd::kStopped);
  EXPECT_THAT(taken_, ElementsAre(3));
  EXPECT_EQ(calls_, 1);
}

}  // namespace
}  // namespace h5mirror::tools
