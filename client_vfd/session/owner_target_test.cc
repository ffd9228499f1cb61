#include "client_vfd/session/owner_target.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

rpc::ClientOptions Configured() {
  rpc::ClientOptions server;
  server.target = "dns:///front:7447";
  return server;
}

TEST(OwnerTargetTest, ASessionGoesWhereItIsSent) {
  OwnerTarget owner;
  EXPECT_EQ(owner.Apply(Configured()).target, "dns:///front:7447");
  ASSERT_TRUE(owner.Follow(Configured(), "node-b:7447"));
  EXPECT_EQ(owner.Apply(Configured()).target, "dns:///node-b:7447");
  EXPECT_FALSE(owner.Follow(Configured(), "node-c:no port"));
  owner.Forget();
  EXPECT_EQ(owner.Apply(Configured()).target, "dns:///front:7447");
}

TEST(OwnerTargetTest, RedirectsInARowEnd) {
  OwnerTarget owner;
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(owner.Follow(Configured(), "node-b:7447"));
  EXPECT_FALSE(owner.Follow(Configured(), "node-b:7447"));
  owner.OnOpened();
  EXPECT_TRUE(owner.Follow(Configured(), "node-b:7447"));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(owner.Follow(Configured(), "node-b:7447"));
  EXPECT_FALSE(owner.Follow(Configured(), "node-b:7447"));
  owner.Forget();
  EXPECT_TRUE(owner.Follow(Configured(), "node-b:7447")) << "the count is over, too";
}

TEST(OwnerTargetTest, ACredentialGoesNowhereAsPlainText) {
  rpc::ClientOptions with_token = Configured();
  with_token.token = "secret";
  rpc::ClientOptions with_munge = Configured();
  with_munge.token_source = "munge";  // Each call makes a credential, though none is kept.
  rpc::ClientOptions with_login = Configured();
  with_login.token_source = "@/home/u/token";
  for (rpc::ClientOptions server : {with_token, with_munge, with_login}) {
    OwnerTarget owner;
    EXPECT_FALSE(owner.Follow(server, "node-b:7447"));
    EXPECT_EQ(owner.Apply(server).target, "dns:///front:7447");
    EXPECT_TRUE(owner.Follow(server, "127.0.0.1:7447"));
    EXPECT_NE(owner.Apply(server).target, "dns:///front:7447");
    server.ca_pem = "-----BEGIN CERTIFICATE-----";
    EXPECT_TRUE(owner.Follow(server, "node-b:7447"));
    EXPECT_EQ(owner.Apply(server).target, "dns:///node-b:7447");
  }
}

TEST(OwnerTargetTest, ACredentialThatComesLaterStaysAway) {
  OwnerTarget owner;
  ASSERT_TRUE(owner.Follow(Configured(), "node-b:7447"));
  rpc::ClientOptions server = Configured();
  server.token = "secret";
  EXPECT_EQ(owner.Apply(server).target, "dns:///front:7447");
}

}  // namespace
}  // namespace h5mirror::vfd
