// Calls of a server of a cluster, which has some of the cells.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "onion_store/testing/test_store.h"
#include "rpc/cluster_calls.h"
#include "rpc/cluster_client.h"
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
    // Redirects are to be seen here, not followed.
    auto direct = rpc::ConnectDirectly(options_, absl::Seconds(20), absl::Seconds(20));
    ASSERT_TRUE(direct.ok()) << direct.status();
    client_ = *std::move(direct);
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

TEST_F(ClusterCallsTest, AnUndeleteByIdFindsTheCell) {
  MirrorWhole("x/a.h5", "hello");
  v1::RemoveFileRequest remove;
  remove.set_name("x/a.h5");
  const auto removed = client_->RemoveFile(remove);
  ASSERT_TRUE(removed.ok()) << removed.status();
  EXPECT_EQ(removed->removal_id().substr(0, 2), "x:");
  const auto by_id = [this](const std::string& id) {
    v1::UndeleteFileRequest request;
    request.set_removal_id(id);
    return client_->UndeleteFile(request).status();
  };
  EXPECT_TRUE(rpc::ElsewhereOf(by_id("z:17")).has_value());
  const absl::Status none = by_id("17");
  EXPECT_TRUE(absl::IsNotFound(none)) << none;
  EXPECT_THAT(std::string(none.message()), HasSubstr("CELL:ID"));
  EXPECT_TRUE(absl::IsNotFound(by_id("x:17")));
  EXPECT_TRUE(by_id(removed->removal_id().substr(2)).ok()) << "as older releases gave it";
}

TEST_F(ClusterCallsTest, AServerWithoutARegistryTellsOfNoCluster) {
  const auto calls = rpc::ClusterCalls::Connect(options_, absl::Seconds(60), absl::Seconds(60));
  ASSERT_TRUE(calls.ok()) << calls.status();
  EXPECT_TRUE(absl::IsFailedPrecondition((*calls)->GetCluster().status()));
  EXPECT_TRUE(absl::IsFailedPrecondition((*calls)->EvictServer({})));
  EXPECT_EQ((*calls)->ListCells({})->cells_size(), 0);
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
