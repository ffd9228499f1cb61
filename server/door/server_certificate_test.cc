// A certificate is renewed while the server runs; what is no sound pair is not taken.
#include "server/door/server_certificate.h"

#include "server/settings/certificates.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

class ServerCertificateTest : public MirrorServerTest {
 protected:
  void SetUp() override {
    MirrorServerTest::SetUp();
    config_.tls_cert = directory_.path() / "server.pem";
    config_.tls_key = directory_.path() / "server.key";
    Show(first_);
    options_.ca_pem = first_authority_.certificate_pem;
  }

  static KeyAndCertificate Authority(std::string_view name) { return *MakeAuthority(name, 2); }
  static KeyAndCertificate Pair(const KeyAndCertificate& authority, int valid_days = 1) {
    return *MakeServerCertificate(authority, {"localhost", "127.0.0.1"}, valid_days);
  }
  void Show(const KeyAndCertificate& pair) {
    ASSERT_TRUE(ReplaceSecretFile(config_.tls_key, pair.key_pem).ok());
    ASSERT_TRUE(ReplaceSecretFile(config_.tls_cert, pair.certificate_pem).ok());
  }
  // A new client that trusts `authority`.
  bool Reaches(const KeyAndCertificate& authority, absl::Duration timeout) {
    rpc::ClientOptions options = options_;
    options.ca_pem = authority.certificate_pem;
    const auto client = rpc::Client::Connect(options, timeout);
    return client.ok() && (*client)->GetServer().ok();
  }
  // That the files are refused, and the first pair is in use still.
  void ExpectRefused(const KeyAndCertificate& pair, std::string_view why) {
    Show(pair);
    const absl::Status status = server_->ReloadCertificate();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
    EXPECT_THAT(std::string(status.message()), HasSubstr(config_.tls_cert.string()));
    EXPECT_TRUE(Reaches(first_authority_, absl::Seconds(30))) << why;
  }

  const KeyAndCertificate first_authority_ = Authority("first");
  const KeyAndCertificate other_authority_ = Authority("other");
  const KeyAndCertificate first_ = Pair(first_authority_);
  const KeyAndCertificate other_ = Pair(other_authority_);
};

TEST_F(ServerCertificateTest, OnlyASoundPairIsTaken) {
  Start();
  MirrorWhole("x.h5", "hello");
  const auto half = [](const std::string& text) { return text.substr(0, text.size() / 2); };
  ExpectRefused({first_.key_pem, other_.certificate_pem}, "not that of the certificate");
  ExpectRefused(Pair(other_authority_, -1), "has expired");
  ExpectRefused({other_.key_pem, half(other_.certificate_pem)}, "no PEM");
  ExpectRefused({half(other_.key_pem), other_.certificate_pem}, "no PEM");
  ExpectRefused({other_.key_pem, ""}, "no PEM");
  ExpectRefused(
      {other_.key_pem, StrCat(other_.certificate_pem, half(other_authority_.certificate_pem))},
      "certificate 2 of the chain's 2 is not whole");
  EXPECT_EQ(ReadBack("x.h5", 1), "hello") << "the connection that stands goes on";
}

TEST_F(ServerCertificateTest, ARenewedPairIsShownToWhoConnectsNext) {
  Start();
  auto session = Open("x.h5", v1::INTENT_CREATE);
  Show({first_.key_pem, other_.certificate_pem});  // As it is while a tool writes both.
  EXPECT_FALSE(server_->ReloadCertificate().ok());
  Show(other_);
  const absl::Status status = server_->ReloadCertificate();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(Reaches(other_authority_, absl::Seconds(30)));
  EXPECT_FALSE(Reaches(first_authority_, absl::Seconds(2)));
  Write(*session, 0, "goes on");
  EXPECT_GT(Cut(*session, 1, v1::BARRIER_KIND_COMMIT, 7).version(), 0);
}

TEST_F(ServerCertificateTest, EachPortShowsTheRenewedPair) {
  config_.listen = *ParseListenList("127.0.0.1:0,127.0.0.1:0");
  Start();
  Show(other_);
  ASSERT_TRUE(server_->ReloadCertificate().ok());
  for (const std::string& address : server_->addresses()) {
    options_.server = options_.target = address;
    EXPECT_TRUE(Reaches(other_authority_, absl::Seconds(30))) << address;
  }
}

TEST_F(ServerCertificateTest, AServerDoesNotStartWithABadPair) {
  Show({first_.key_pem, other_.certificate_pem});
  const absl::Status status = MirrorServer::Start(config_, *store_, clock_).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

}  // namespace
}  // namespace h5mirror::server
