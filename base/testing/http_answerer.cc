#include "base/testing/http_answerer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <utility>

#include "base/strings.h"

namespace h5mirror {
namespace {

// The size of the body, as the headers announce it; 0: they do not.
size_t BodySize(const std::string& request) {
  const std::string name = "Content-Length: ";
  const size_t at = request.find(name);
  if (at == std::string::npos) return 0;
  return std::strtoul(request.c_str() + at + name.size(), nullptr, 10);
}

bool IsWhole(const std::string& request) {
  const size_t end = request.find("\r\n\r\n");
  return end != std::string::npos && request.size() >= end + 4 + BodySize(request);
}

std::string ReadRequest(int fd) {
  std::string request;
  char block[4096];
  while (!IsWhole(request)) {
    const ssize_t got = recv(fd, block, sizeof block, 0);
    if (got <= 0) break;
    request.append(block, static_cast<size_t>(got));
  }
  return request;
}

}  // namespace

HttpAnswerer::HttpAnswerer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_.get(), any, size) != 0 || listen(listener_.get(), 16) != 0 ||
      getsockname(listener_.get(), any, &size) != 0) {
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Serve(); });
}

HttpAnswerer::~HttpAnswerer() {
  shutdown(listener_.get(), SHUT_RDWR);
  thread_.join();
}

void HttpAnswerer::Answer(std::string bytes) {
  const absl::MutexLock lock(&mutex_);
  answers_.push_back(std::move(bytes));
}

void HttpAnswerer::Answer(int code, const std::string& body) {
  Answer(StrCat("HTTP/1.1 ", code, " Said\r\nContent-Length: ", body.size(),
                "\r\nConnection: close\r\n\r\n", body));
}

std::string HttpAnswerer::url() const { return StrCat("http://127.0.0.1:", port_, "/hook"); }

std::vector<std::string> HttpAnswerer::requests() const {
  const absl::MutexLock lock(&mutex_);
  return requests_;
}

bool HttpAnswerer::WaitForRequests(size_t count) const {
  const absl::MutexLock lock(&mutex_);
  const auto have_come = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return requests_.size() >= count;
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&have_come), absl::Seconds(20));
}

void HttpAnswerer::Serve() {
  while (true) {
    OwnedFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection.valid()) return;
    ServeOne(std::move(connection));
  }
}

void HttpAnswerer::ServeOne(OwnedFd connection) {
  std::string request = ReadRequest(connection.get());
  if (request.empty()) return;
  std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
  {
    const absl::MutexLock lock(&mutex_);
    if (!answers_.empty()) {
      answer = std::move(answers_.front());
      answers_.pop_front();
    }
    requests_.push_back(std::move(request));
  }
  if (answer.empty()) {
    hanging_.push_back(std::move(connection));
    return;
  }
  send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
}

}  // namespace h5mirror
