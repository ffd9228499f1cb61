// Requests to the HTTP door of the whole server, by raw sockets.
#ifndef H5MIRROR_SERVER_TESTING_HTTP_FIXTURE_H_
#define H5MIRROR_SERVER_TESTING_HTTP_FIXTURE_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/owned_fd.h"
#include "server/settings/token_file.h"
#include "server/testing/mirror_server_fixture.h"

namespace h5mirror::server {

struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> headers = {};  // by names in lower case
  std::string body = {};
};

inline AccessRule HttpRule(const std::string& files, std::vector<std::string> users,
                           std::string_view allow) {
  AccessRule rule;
  rule.files = {files};
  rule.users = std::move(users);
  rule.allow = *Rights::Parse(allow);
  return rule;
}

class HttpTest : public MirrorServerTest {
 protected:
  void SetUp() override {
    MirrorServerTest::SetUp();
    config_.http_listen = *ParseListenList("127.0.0.1:0");
  }

  // Each may do all that the tables let it. To be called before Start().
  void AddTokens(const std::vector<std::string>& names) {
    config_.tokens_file = directory_.path() / "tokens";
    for (const std::string& name : names) {
      tokens_[name] = *AddToken(config_.tokens_file, name, Rights::All());
    }
  }
  std::string As(const std::string& name) const {
    return StrCat("Authorization: Bearer ", tokens_.at(name), "\r\n");
  }

  OwnedFd Dial() const {
    OwnedFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(server_->http_ports().front()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
  static void Send(const OwnedFd& fd, const std::string& text) {
    EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Until the other side closes.
  static std::string Receive(const OwnedFd& fd) {
    std::string text;
    char buffer[64 << 10];
    for (ssize_t count = 0; (count = recv(fd.get(), buffer, sizeof(buffer), 0)) > 0;) {
      text.append(buffer, static_cast<size_t>(count));
    }
    return text;
  }
  HttpReply Ask(const std::string& method, const std::string& path,
                const std::string& headers = "") const {
    const OwnedFd fd = Dial();
    Send(fd, StrCat(method, " ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n",
                    headers, "\r\n"));
    return Parse(Receive(fd));
  }
  HttpReply Get(const std::string& path, const std::string& headers = "") const {
    return Ask("GET", path, headers);
  }
  // Makes another version, with other bytes.
  void ReplaceWhole(const std::string& name, const std::string& data) {
    auto stream = Open(name, v1::INTENT_REPLACE);
    Write(*stream, 0, data);
    EXPECT_GT(Cut(*stream, 1, v1::BARRIER_KIND_COMMIT, data.size()).version(), 1);
    EXPECT_TRUE(stream->Finish().ok());
  }
  // As MirrorWhole(), in frames of a size that a client sends.
  void MirrorLong(const std::string& name, const std::string& data) {
    constexpr size_t kFrameBytes = 256 << 10;
    auto stream = Open(name, v1::INTENT_CREATE);
    for (size_t at = 0; at < data.size(); at += kFrameBytes) {
      Write(*stream, at, data.substr(at, kFrameBytes));
    }
    EXPECT_GT(Cut(*stream, 1, v1::BARRIER_KIND_COMMIT, data.size()).version(), 0);
    EXPECT_TRUE(stream->Finish().ok());
  }
  static HttpReply Parse(const std::string& text) {
    HttpReply answer;
    const size_t end = text.find("\r\n\r\n");
    if (!text.starts_with("HTTP/1.1 ") || end == std::string::npos) return answer;
    EXPECT_TRUE(absl::SimpleAtoi(text.substr(9, 3), &answer.status));
    answer.body = text.substr(end + 4);
    for (const absl::string_view each : absl::StrSplit(text.substr(0, end), "\r\n")) {
      const std::string line(each);
      const size_t colon = line.find(": ");
      if (colon == std::string::npos) continue;
      answer.headers[absl::AsciiStrToLower(line.substr(0, colon))] = line.substr(colon + 2);
    }
    return answer;
  }
  // Reads on until `text` has come, for 20 s at most.
  static void ReadUntil(const OwnedFd& fd, const std::string& text, std::string& all) {
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    char buffer[4096];
    while (all.find(text) == std::string::npos) {
      const ssize_t count = recv(fd.get(), buffer, sizeof(buffer), 0);
      if (count <= 0) {
        ADD_FAILURE() << text << " never came: " << all;
        return;
      }
      all.append(buffer, static_cast<size_t>(count));
    }
  }
  OwnedFd Follow(const std::string& name, const std::string& headers = "") const {
    OwnedFd fd = Dial();
    Send(fd, StrCat("GET /v1/files/", name, "/events HTTP/1.1\r\nHost: localhost\r\n", headers,
                    "\r\n"));
    return fd;
  }

  std::map<std::string, std::string> tokens_;  // by the names of users
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_TESTING_HTTP_FIXTURE_H_
