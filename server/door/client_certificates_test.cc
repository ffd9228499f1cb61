// Certificates of clients: names, and the end of those that do not count any more.
#include "server/door/client_certificates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "server/settings/secret_file.h"
#include "server/testing/client_certificate.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

TEST(NamePatternTest, FindsTheNameBetweenTheTexts) {
  const auto pattern = NamePattern::Parse("uri:spiffe://site/user/${user}/lab");
  ASSERT_TRUE(pattern.ok()) << pattern.status();
  EXPECT_EQ(pattern->field, NamePattern::Field::kUri);
  EXPECT_EQ(pattern->NameIn("spiffe://site/user/anna/lab"), "anna");
  for (const char* text : {"spiffe://site/user//lab", "spiffe://site/user/anna", "anna",
                           "spiffe://site/user/an/na/lab", "spiffe://site/user/a*/lab",
                           "spiffe://site/user/../lab", "spiffe://site/user/an na/lab", ""}) {
    EXPECT_EQ(pattern->NameIn(text), "") << text;
  }
  EXPECT_EQ(pattern->NameIn(std::string("spiffe://site/user/an\0na/lab", 28)), "");
}

TEST(NamePatternTest, OtherFormsAreRefused) {
  for (const char* text : {"", "cn", "cn:", "cn:anna", "ou:${user}", "${user}", "${user}:cn",
                           "cn:${user}${user}", "uri:${usr}"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(NamePattern::Parse(text).status())) << text;
  }
}

TEST(KnownIdentitiesTest, AnEndIsToldOfForAWhile) {
  KnownIdentities<ClientIdentity, &ClientIdentity::expires> known;
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  EXPECT_EQ(known.NextEnd(now), absl::InfiniteFuture());
  const auto remember = [&](const char* name, absl::Time end) {
    ClientIdentity identity{.name = name, .issuer = "", .serial = "", .expires = end};
    auto shared = std::make_shared<const ClientIdentity>(std::move(identity));
    known.Remember(Sha256(name), shared, now);
    return shared;
  };
  const auto brief = remember("brief", now + absl::Milliseconds(100));
  const auto late = remember("late", now + absl::Minutes(1));
  known.Forget();  // What runs keeps them.
  // Asked the first time when the one has ended already.
  EXPECT_EQ(known.NextEnd(now + absl::Milliseconds(250)), brief->expires);
  EXPECT_EQ(known.NextEnd(now + absl::Seconds(2)), brief->expires);
  EXPECT_EQ(known.NextEnd(brief->expires + absl::Seconds(2)), late->expires);
  EXPECT_EQ(known.NextEnd(now), late->expires);
}

TEST(KnownIdentitiesTest, AnEndThatNobodyWaitsForIsForgotten) {
  KnownIdentities<ClientIdentity, &ClientIdentity::expires> known;
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  known.Remember(Sha256("a"),
                 std::make_shared<const ClientIdentity>(
                     ClientIdentity{.name = "a", .issuer = "", .serial = "", .expires = now}),
                 now);
  EXPECT_EQ(known.NextEnd(now), now);
  known.Forget();
  EXPECT_EQ(known.NextEnd(now), absl::InfiniteFuture());
}

// A server with TLS that asks for certificates, and has no tokens.
class ClientCertificatesTest : public MirrorServerTest {
 protected:
  void SetUp() override {
    MirrorServerTest::SetUp();
    const KeyAndCertificate pair = *MakeServerCertificate(server_authority_, {"127.0.0.1"}, 1);
    Put("server.pem", pair.certificate_pem);
    Put("server.key", pair.key_pem);
    Put("clients.pem", authority_.certificate_pem);
    config_.tls_cert = Path("server.pem");
    config_.tls_key = Path("server.key");
    config_.tls_client_ca = Path("clients.pem");
    config_.tls_client_names = {"uri:spiffe://site/${user}", "cn:${user}"};
    options_.ca_pem = server_authority_.certificate_pem;
    Show({.common_name = "anna"});
  }
  std::filesystem::path Path(const std::string& name) const { return directory_.path() / name; }
  void Put(const std::string& name, const std::string& text) {
    ASSERT_TRUE(ReplaceSecretFile(Path(name), text).ok());
  }
  // What the next client shows.
  void Show(const ClientCertificateRequest& request) {
    const KeyAndCertificate pair = MakeClientCertificate(authority_, request);
    options_.certificate_pem = pair.certificate_pem;
    options_.key_pem = pair.key_pem;
  }
  absl::Status Call() {
    const auto client = rpc::Client::Connect(options_, absl::Seconds(20));
    if (!client.ok()) return client.status();
    return (*client)->GetServer().status();
  }
  static AccessRule Rule(const std::string& files, const std::string& user) {
    return {.files = {files},
            .users = {user},
            .groups = {},
            .allow = *Rights::Parse("read,write"),
            .source = "test"};
  }

  const KeyAndCertificate server_authority_ = *MakeAuthority("of the server", 2);
  const KeyAndCertificate authority_ = *MakeAuthority("of the site", 2);
};

TEST_F(ClientCertificatesTest, ItsNameIsTheUserOfVersionsAndTables) {
  config_.access = {Rule("home/anna/**", "cert:anna"), Rule("home/bob/**", "bob"),
                    Rule("home/carol/**", "token:carol")};
  Start();
  MirrorWhole("home/anna/x.h5", "hello");
  EXPECT_EQ(ReadBack("home/anna/x.h5", 1), "hello");
  v1::GetVersionRequest request;
  request.set_name("home/anna/x.h5");
  request.set_version(1);
  const auto version = client_->GetVersion(request);
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(version->verified_user(), "anna");
  const auto hidden = [&](const std::string& name) {
    v1::GetFileRequest file;
    file.set_name(name);
    return absl::IsNotFound(client_->GetFile(file, absl::Seconds(20)).status());
  };
  EXPECT_TRUE(hidden("home/bob/x.h5"));
}

TEST_F(ClientCertificatesTest, TheFirstPatternThatFitsNamesTheUser) {
  Start();
  Show({.common_name = "node7", .alternative_names = "DNS:x,URI:https://x,URI:spiffe://site/bob"});
  EXPECT_TRUE(Call().ok());
  const auto certificates = ClientCertificates::Load(
      {config_.tls_client_ca,
       {},
       {*NamePattern::Parse("uri:spiffe://site/${user}"), *NamePattern::Parse("cn:${user}")}});
  ASSERT_TRUE(certificates.ok()) << certificates.status();
  EXPECT_EQ((*(*certificates)->Find(options_.certificate_pem))->name, "bob");
  Show({.common_name = "Anna Smith"});
  const absl::Status unnamed = Call();
  EXPECT_TRUE(absl::IsUnauthenticated(unnamed)) << unnamed;
  EXPECT_THAT(std::string(unnamed.message()), HasSubstr("tls_client_names"));
}

TEST_F(ClientCertificatesTest, OthersAreRefused) {
  Start();
  const KeyAndCertificate stranger =
      MakeClientCertificate(*MakeAuthority("another", 2), {.common_name = "anna"});
  options_.certificate_pem = stranger.certificate_pem;
  options_.key_pem = stranger.key_pem;
  EXPECT_FALSE(Call().ok());
  Show({.common_name = "anna", .valid_days = -1});
  EXPECT_FALSE(Call().ok());
  options_.certificate_pem = options_.key_pem = "";
  const absl::Status without = Call();
  EXPECT_TRUE(absl::IsUnauthenticated(without)) << without;
  EXPECT_THAT(std::string(without.message()), HasSubstr("client.pem"));
}

TEST_F(ClientCertificatesTest, ARevokedOneEndsWhatRuns) {
  Put("crl.pem", MakeRevocationList(authority_, {99}));
  config_.tls_client_crl = Path("crl.pem");
  Show({.common_name = "anna", .serial = 7});
  Start();
  auto session = Open("x.h5", v1::INTENT_CREATE);
  Put("crl.pem", MakeRevocationList(authority_, {99, 7}));
  ASSERT_TRUE(server_->ReloadCertificate().ok());
  while (session->Receive().ok()) {
  }
  const absl::Status end = session->Finish();
  EXPECT_TRUE(absl::IsUnauthenticated(end)) << end;
  EXPECT_THAT(std::string(end.message()), HasSubstr("was revoked"));
  EXPECT_TRUE(absl::IsUnauthenticated(Call()));
  Show({.common_name = "anna", .serial = 8});
  EXPECT_TRUE(Call().ok());
  // A list with a damaged one behind it changes nothing, so 7 stays revoked.
  const std::string whole = MakeRevocationList(authority_, {99, 7});
  Put("crl.pem", whole + whole.substr(0, whole.size() / 2));
  EXPECT_FALSE(server_->ReloadCertificate().ok());
  // Nor does one of a stranger's.
  Put("crl.pem", MakeRevocationList(*MakeAuthority("of the site", 2), {8}));
  EXPECT_FALSE(server_->ReloadCertificate().ok());
  EXPECT_TRUE(Call().ok());
}

TEST_F(ClientCertificatesTest, FilesThatOthersMayWriteAreRefused) {
  Put("crl.pem", MakeRevocationList(authority_, {99}));
  const ClientCertificateSettings settings{Path("clients.pem"), Path("crl.pem"), {}};
  for (const std::filesystem::path& path : {settings.authority, settings.revocation}) {
    ASSERT_EQ(chmod(path.c_str(), 0664), 0);
    const absl::Status status = ClientCertificates::Load(settings).status();
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("chmod go-w"));
    ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  }
  EXPECT_TRUE(ClientCertificates::Load(settings).ok());
  // Nobody writes into it: whoever waited for that would wait for ever.
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  const absl::Status fifo =
      ClientCertificates::Load({Path("fifo"), settings.revocation, {}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(fifo)) << fifo;
}

TEST_F(ClientCertificatesTest, ATokenGoesBeforeIt) {
  config_.tokens_file = Path("tokens");
  const std::string token = *AddToken(config_.tokens_file, "robot", *Rights::Parse("read"));
  config_.access = {Rule("anna/**", "cert:anna")};
  Start();
  MirrorWhole("anna/x.h5", "hello");
  options_.token = token;
  const auto client = rpc::Client::Connect(options_, absl::Seconds(20));
  ASSERT_TRUE(client.ok()) << client.status();
  v1::GetFileRequest file;
  file.set_name("anna/x.h5");
  EXPECT_TRUE(absl::IsNotFound((*client)->GetFile(file, absl::Seconds(20)).status()));
}

}  // namespace
}  // namespace h5mirror::server
