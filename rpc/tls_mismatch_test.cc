#include "rpc/tls_mismatch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::rpc {
namespace {

using testing::HasSubstr;

// A server of one connection at a time: it hears something, answers, and counts.
class Answering {
 public:
  Answering(int family, std::string answer) : answer_(std::move(answer)) {
    fd_ = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_storage address{};
    address.ss_family = static_cast<sa_family_t>(family);
    socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (family == AF_INET6) {
      reinterpret_cast<sockaddr_in6*>(&address)->sin6_addr = in6addr_loopback;
    } else {
      reinterpret_cast<sockaddr_in*>(&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    usable_ = bind(fd_, reinterpret_cast<sockaddr*>(&address), length) == 0 && listen(fd_, 8) == 0;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);  // At one place in both.
    if (usable_) thread_ = std::thread([this] { Run(); });
  }
  ~Answering() {
    shutdown(fd_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    close(fd_);
  }
  bool usable() const { return usable_; }
  int port() const { return port_; }
  int asked() const { return asked_; }
  const std::string& heard() const { return heard_; }

 private:
  void Run() {
    for (int one; (one = accept(fd_, nullptr, nullptr)) >= 0;) {
      char buffer[1024];
      const ssize_t got = recv(one, buffer, sizeof buffer, 0);
      if (got > 0) heard_.assign(buffer, static_cast<size_t>(got));
      ++asked_;
      send(one, answer_.data(), answer_.size(), MSG_NOSIGNAL);
      close(one);
    }
  }

  const std::string answer_;
  int fd_ = -1;
  int port_ = 0;
  bool usable_ = false;
  std::atomic<int> asked_{0};
  std::string heard_;
  std::thread thread_;
};

ClientOptions To(const std::string& server) {
  ClientOptions options;
  options.server = server;
  options.target = absl::StrCat("dns:///", server);
  options.token = "secret";
  return options;
}

std::string Closed(const std::string& peer) {
  return absl::StrCat("failed to connect to all addresses; last error: UNAVAILABLE: ", peer,
                      ": Socket closed");
}

const std::string kAlert("\x15\x03\x03\x00\x02\x02\x28", 7);

TEST(TlsMismatchTest, AServerThatAnswersInTlsIsFoundOnceAMinute) {
  const Answering server(AF_INET, kAlert);
  const std::string address = absl::StrCat("127.0.0.1:", server.port());
  for (int n = 0; n < 3; ++n) {
    const auto found =
        FindTlsMismatch(To(address), Closed(absl::StrCat("ipv4:", address)), absl::Seconds(20));
    ASSERT_TRUE(found.has_value());
    EXPECT_THAT(*found, HasSubstr(address + " speaks TLS, and no CA is set here"));
    EXPECT_THAT(*found, HasSubstr("ca.pem"));
  }
  EXPECT_EQ(server.asked(), 1);
  EXPECT_EQ(server.heard().substr(0, 3), "\x16\x03\x01");
  EXPECT_EQ(server.heard().find("secret"), std::string::npos);
}

TEST(TlsMismatchTest, AnIpv6AddressIsFoundInGrpcsWords) {
  const Answering server(AF_INET6, kAlert);
  if (!server.usable()) GTEST_SKIP() << "no IPv6 here";
  const std::string peer = absl::StrCat("ipv6:%5B::1%5D:", server.port());
  EXPECT_TRUE(
      FindTlsMismatch(To(absl::StrCat("[::1]:", server.port())), Closed(peer), absl::Seconds(20))
          .has_value());
}

TEST(TlsMismatchTest, OneThatSpeaksHttpOrNothingIsNone) {
  for (const std::string& answer : {std::string("\x00\x00\x18\x04\x00\x00\x00\x00\x00", 9),
                                    std::string(), std::string("SSH-2.0-OpenSSH_9.2")}) {
    const Answering server(AF_INET, answer);
    const std::string address = absl::StrCat("127.0.0.1:", server.port());
    EXPECT_EQ(
        FindTlsMismatch(To(address), Closed(absl::StrCat("ipv4:", address)), absl::Seconds(20)),
        std::nullopt);
  }
}

TEST(TlsMismatchTest, WhereNobodyListensNobodyIsAsked) {
  const Answering server(AF_INET, kAlert);
  const std::string address = absl::StrCat("127.0.0.1:", server.port());
  EXPECT_EQ(FindTlsMismatch(To(address), absl::StrCat("ipv4:", address, ": Connection refused"),
                            absl::Seconds(20)),
            std::nullopt);
  EXPECT_EQ(FindTlsMismatch(To("node7:1"), Closed("somewhere"), absl::Seconds(20)), std::nullopt);
  EXPECT_EQ(server.asked(), 0);
}

TEST(TlsMismatchTest, WithACaTheErrorSaysIt) {
  ClientOptions options = To("node7:7447");
  options.ca_pem = "pem";
  const auto why = [&](const char* error) {
    return FindTlsMismatch(options, error, absl::Seconds(20)).value_or("");
  };
  EXPECT_THAT(why("Ssl handshake failed: SSL_ERROR_SSL: error:0A00010B:SSL routines::wrong version "
                  "number"),
              HasSubstr("node7:7447 speaks no TLS, and a CA is set here"));
  EXPECT_THAT(why("error:0A000086:SSL routines::certificate verify failed"),
              HasSubstr("is not signed by the CA that is set here"));
  EXPECT_THAT(why("Peer name node7 is not in peer certificate"), HasSubstr("--host"));
  EXPECT_EQ(why("ipv4:10.0.0.7:7447: Socket closed"), "");
}

}  // namespace
}  // namespace h5mirror::rpc
