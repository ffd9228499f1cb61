// Calls of a server of a cluster, which has some of the cells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "onion_store/testing/test_store.h"
#include "rpc/elsewhere.h"
#include "server/cluster/cluster_store.h"
#include "server/testing/fake_ownership.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

class ClusterCallsTest : public MirrorServerTest {
 protected:
  void SetUp() override {
    MirrorServerTest::SetUp();
    auto cells = std::make_unique<ClusterStore>(ownership_);
    std::filesystem::create_directory(root() / "x");
    cells->Add("x", 3, {nullptr, store::OpenStore(env(), root() / "x")});
    store_ = std::move(cells);
    ownership_.Serve("x", 3);
    ownership_.SetRoute("z", {cluster::RouteKind::kRedirect, 9, "b", "node-b:7447"});
    ownership_.SetRoute("w", {cluster::RouteKind::kWait, 2, "", ""});
    Start();
  }
  absl::Status Undelete(const std::string& name) {
    v1::UndeleteFileRequest request;
    request.set_name(name);
    return client_->UndeleteFile(request).status();
  }

  FakeOwnership ownership_;  // The store ends before it: TearDown().
};

TEST_F(ClusterCallsTest, AnUndeleteDeniesNoFileOfAnotherServer) {
  const auto elsewhere = rpc::ElsewhereOf(Undelete("z/a.h5"));
  ASSERT_TRUE(elsewhere.has_value());
  EXPECT_EQ(*elsewhere, (rpc::Elsewhere{"node-b:7447", "z", 9}));
  EXPECT_TRUE(absl::IsUnavailable(Undelete("w/a.h5")));
  const absl::Status none = Undelete("x/a.h5");
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr("nothing was removed as x/a.h5"));
  EXPECT_TRUE(absl::IsNotFound(Undelete("v/a.h5"))) << "which lies in no cell";
}

TEST_F(ClusterCallsTest, NoListIsShortWhileTheRegistryIsAway) {
  MirrorWhole("x/a.h5", "hello");
  v1::RemoveFileRequest remove;
  remove.set_name("x/a.h5");
  ASSERT_TRUE(client_->RemoveFile(remove).ok());
  const absl::Status away = absl::UnavailableError("the registry is away");
  ownership_.SetGuard(away, away);
  EXPECT_TRUE(absl::IsUnavailable(client_->ListFiles({}).status()));
  EXPECT_TRUE(absl::IsUnavailable(client_->ListRemovedFiles({}).status()));
  EXPECT_TRUE(absl::IsUnavailable(Undelete("x/a.h5")));
  ownership_.SetGuard(absl::OkStatus(), absl::OkStatus());
  EXPECT_TRUE(Undelete("x/a.h5").ok());
  EXPECT_EQ(client_->ListFiles({})->files_size(), 1);
}

}  // namespace
}  // namespace h5mirror::server
