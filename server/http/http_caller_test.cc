#include "server/http/http_caller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/strings.h"
#include "server/settings/openssl_pointers.h"
#include "server/testing/client_certificate.h"
#include "server/testing/test_directory.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

std::string DerOf(const std::string& pem) {
  const CertificatePtr certificate(
      PEM_read_bio_X509(ReaderOf(pem).get(), nullptr, nullptr, nullptr));
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(certificate.get(), &bytes);
  std::string der(reinterpret_cast<char*>(bytes), static_cast<size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

class ClientChainTest : public ::testing::Test {
 protected:
  ClientChainTest() {
    auto clients = ClientCertificates::Load(
        {directory_.Write("ca.pem", authority_.certificate_pem), {}, {NamePattern()}});
    EXPECT_TRUE(clients.ok()) << clients.status();
    clients_ = *std::move(clients);
  }

  TestDirectory directory_;
  const KeyAndCertificate authority_ = *MakeAuthority("a site", 10);
  std::unique_ptr<ClientCertificates> clients_;
};

TEST_F(ClientChainTest, ACertificateOfTheAuthorityCounts) {
  const KeyAndCertificate anna = MakeClientCertificate(authority_, {.common_name = "anna"});
  const auto pem = VerifyClientChain({DerOf(anna.certificate_pem)}, *clients_);
  ASSERT_TRUE(pem.ok()) << pem.status();
  EXPECT_EQ((*clients_->Find(*pem))->name, "anna");
}

TEST_F(ClientChainTest, OneOfAnotherAuthorityDoesNot) {
  const KeyAndCertificate other = *MakeAuthority("a site", 10);
  const KeyAndCertificate anna = MakeClientCertificate(other, {.common_name = "anna"});
  const absl::Status refused =
      VerifyClientChain({DerOf(anna.certificate_pem), DerOf(other.certificate_pem)}, *clients_)
          .status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Message(refused), HasSubstr("does not count"));
}

TEST_F(ClientChainTest, AnExpiredOneDoesNot) {
  const KeyAndCertificate anna =
      MakeClientCertificate(authority_, {.common_name = "anna", .valid_days = -1});
  EXPECT_THAT(Message(VerifyClientChain({DerOf(anna.certificate_pem)}, *clients_).status()),
              HasSubstr("expired"));
}

TEST_F(ClientChainTest, WhatIsNoCertificateDoesNot) {
  EXPECT_FALSE(VerifyClientChain({}, *clients_).ok());
  EXPECT_FALSE(VerifyClientChain({""}, *clients_).ok());
  EXPECT_FALSE(VerifyClientChain({"junk"}, *clients_).ok());
  const KeyAndCertificate anna = MakeClientCertificate(authority_, {.common_name = "anna"});
  const std::string der = DerOf(anna.certificate_pem);
  EXPECT_FALSE(VerifyClientChain({der, "junk"}, *clients_).ok());
  EXPECT_FALSE(VerifyClientChain(std::vector<std::string>(50, der), *clients_).ok());
}

TEST(GrpcPeerTextTest, IsWhatParseGrpcPeerReads) {
  for (const char* text : {"ipv4:192.0.2.7:4711", "ipv6:[2001:db8::1]:80", "ipv4:127.0.0.1:1"}) {
    const auto peer = ParseGrpcPeer(text);
    ASSERT_TRUE(peer.has_value()) << text;
    EXPECT_EQ(GrpcPeerText(*peer), text);
  }
  EXPECT_EQ(GrpcPeerText({.kind = Peer::Kind::kUnixSocket, .uid = 7}), "unix:");
}

}  // namespace
}  // namespace h5mirror::server
