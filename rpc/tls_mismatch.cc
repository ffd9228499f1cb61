#include "rpc/tls_mismatch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "base/steady_time.h"
#include "base/strings.h"

namespace h5mirror::rpc {
namespace {

constexpr absl::Duration kAnswerKept = absl::Minutes(1);

// A ClientHello for TLS 1.2 and 1.3 (RFC 8446, 4.1.2) with ALPN "h2", without a key share: a server
// of either version answers it with a handshake message or an alert.
constexpr unsigned char kClientHello[] = {
    0x16, 3,   1,    0,   126,  // record: handshake, 126 bytes
    1,    0,   0,    122,       // ClientHello, 122 bytes
    3,    3,                    // TLS 1.2; 1.3 is an extension
    'h',  '5', 'm',  'i', 'r',  'r', 'o',  'r', ' ',  'a',  's',  'k',  's',  ' ',  'f',  'o',
    'r',  ' ', 'T',  'L', 'S',  ',', ' ',  'n', 'o',  't',  'h',  'i',  'n',  'g',  ' ',  ' ',
    0,  // no session
    0,    14,  0x13, 1,   0x13, 2,   0x13, 3,   0xc0, 0x2b, 0xc0, 0x2f, 0xc0, 0x2c, 0xc0, 0x30,
    1,    0,                                                           // no compression
    0,    67,                                                          // extensions
    0,    10,  0,    8,   0,    6,   0,    29,  0,    23,   0,    24,  // groups
    0,    11,  0,    2,   1,    0,                                     // point formats
    0,    13,  0,    14,  0,    12,  4,    3,   8,    4,    4,    1,   // signatures
    5,    3,   8,    5,   8,    6,   0,    16,  0,    5,    0,    3,    2,    'h',  '2',  // ALPN
    0,    43,  0,    5,   4,    3,   4,    3,   3,  // 1.3, 1.2
    0,    51,  0,    2,   0,    0,                  // no key share
    0,    21,  0,    3,   0,    0,   0,             // padding
};

class Socket {
 public:
  explicit Socket(int family)
      : fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {}
  Socket(const Socket&) = delete;
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  const int fd_;
};

struct Peer {
  sockaddr_storage address{};
  socklen_t length = 0;
};

std::optional<Peer> InternetPeer(int family, std::string host, std::string_view port) {
  Peer peer;
  int number = 0;
  if (!absl::SimpleAtoi(ToAbsl(port), &number) || number < 1 || number > 65535) return {};
  if (family == AF_INET) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&peer.address);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(static_cast<uint16_t>(number));
    peer.length = sizeof *v4;
    if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) != 1) return {};
    return peer;
  }
  host = absl::StrReplaceAll(host, {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&peer.address);
  v6->sin6_family = AF_INET6;
  v6->sin6_port = htons(static_cast<uint16_t>(number));
  peer.length = sizeof *v6;
  if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) != 1) return {};
  return peer;
}

// The address that gRPC names in its error, so that no name is looked up again:
// "...; last error: UNAVAILABLE: ipv4:10.0.0.7:7447: Socket closed".
std::optional<Peer> PeerIn(std::string_view error) {
  for (const auto& [scheme, family] : {std::pair<std::string_view, int>{"ipv4:", AF_INET},
                                       std::pair<std::string_view, int>{"ipv6:", AF_INET6}}) {
    const size_t start = error.rfind(scheme);
    if (start == std::string_view::npos) continue;
    std::string_view rest = error.substr(start + scheme.size());
    rest = rest.substr(0, rest.find(": "));
    const size_t colon = rest.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    return InternetPeer(family, std::string(rest.substr(0, colon)), rest.substr(colon + 1));
  }
  return std::nullopt;
}

std::optional<Peer> UnixPeer(std::string_view target) {
  constexpr std::string_view kScheme = "unix:";
  Peer peer;
  auto* local = reinterpret_cast<sockaddr_un*>(&peer.address);
  if (!target.starts_with(kScheme)) return std::nullopt;
  const std::string_view path = target.substr(kScheme.size());
  if (path.size() >= sizeof local->sun_path) return std::nullopt;
  local->sun_family = AF_UNIX;
  std::memcpy(local->sun_path, path.data(), path.size());
  peer.length = sizeof *local;
  return peer;
}

bool Wait(int fd, short events, absl::Time deadline) {
  while (true) {
    const absl::Duration left = deadline - SteadyNow();
    if (left <= absl::ZeroDuration()) return false;
    pollfd one{fd, events, 0};
    const int ready = poll(&one, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// A TLS record: a handshake message or an alert, of version 3.x. HTTP/2 begins with a SETTINGS
// frame, whose length comes first.
bool AnswersInTls(const Peer& peer, absl::Duration timeout) {
  const absl::Time deadline = SteadyNow() + timeout;
  const Socket socket(peer.address.ss_family);
  if (socket.fd() < 0) return false;
  const auto* address = reinterpret_cast<const sockaddr*>(&peer.address);
  if (connect(socket.fd(), address, peer.length) < 0 && errno != EINPROGRESS) return false;
  if (!Wait(socket.fd(), POLLOUT, deadline)) return false;
  if (send(socket.fd(), kClientHello, sizeof kClientHello, MSG_NOSIGNAL) !=
      static_cast<ssize_t>(sizeof kClientHello)) {
    return false;
  }
  std::array<unsigned char, 3> answer{};
  if (!Wait(socket.fd(), POLLIN, deadline)) return false;
  const ssize_t got = recv(socket.fd(), answer.data(), answer.size(), 0);
  return got >= 2 && (answer[0] == 0x16 || answer[0] == 0x15) && answer[1] == 3;
}

// Remembers the servers' answers, so that a program with many retries does not probe each time.
class Answers {
 public:
  static Answers& Get() {
    static auto* answers = new Answers;
    return *answers;
  }

  bool SpeaksTls(const ClientOptions& options, std::string_view error, absl::Duration timeout) {
    const std::string key = options.target;
    {
      absl::MutexLock lock(&mutex_);
      const auto known = known_.find(key);
      if (known != known_.end() && SteadyNow() < known->second.until) return known->second.is_tls;
    }
    std::optional<Peer> peer = UnixPeer(options.target);
    if (!peer) peer = PeerIn(error);
    const bool is_tls = peer && AnswersInTls(*peer, timeout);
    absl::MutexLock lock(&mutex_);
    known_[key] = {is_tls, SteadyNow() + kAnswerKept};
    return is_tls;
  }

 private:
  struct Answer {
    bool is_tls = false;
    absl::Time until;
  };
  absl::Mutex mutex_;
  std::map<std::string, Answer> known_ ABSL_GUARDED_BY(mutex_);  // by target; as many as configured
};

// OpenSSL's words, which have been these since its version 1.0.
std::optional<std::string> InHandshake(const ClientOptions& options, std::string_view error) {
  const auto says = [&](std::string_view words) {
    return absl::StrContains(ToAbsl(error), ToAbsl(words));
  };
  if (says("wrong version number") || says("WRONG_VERSION_NUMBER")) {
    return StrCat(options.server, " speaks no TLS, and a CA is set here, so that TLS is spoken. ",
                  "Take the CA away (`ca`, or ca.pem in ~/.config/h5mirror or /etc/h5mirror), ",
                  "or start the server with the tls_cert and tls_key that h5mirrord init makes");
  }
  if (says("certificate verify failed") || says("CERTIFICATE_VERIFY_FAILED")) {
    return StrCat("the certificate of ", options.server, " is not signed by the CA that is set ",
                  "here, or it has expired. Copy the server's ca.pem again (h5mirrord init wrote ",
                  "it, into /etc/h5mirror there unless told otherwise), or name it as `ca`");
  }
  if (says("is not in peer certificate")) {
    return StrCat("the certificate of ", options.server, " is for other names than this one: name ",
                  "the server as its certificate does, or have h5mirrord init --host make one ",
                  "for this name");
  }
  return std::nullopt;
}

// Nobody listens, or nobody is there.
bool IsAway(std::string_view error) {
  for (const char* words : {"refused", "No such file", "timed out", "Timeout", "unreachable",
                            "No route", "DNS resolution", "Domain name"}) {
    if (absl::StrContains(ToAbsl(error), words)) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> FindTlsMismatch(const ClientOptions& options, std::string_view error,
                                           absl::Duration timeout) {
  if (!options.ca_pem.empty()) return InHandshake(options, error);
  if (IsAway(error) || !Answers::Get().SpeaksTls(options, error, timeout)) return std::nullopt;
  return StrCat(options.server, " speaks TLS, and no CA is set here. Copy ca.pem from the server ",
                "(h5mirrord init wrote it, into /etc/h5mirror unless told otherwise) to ",
                "~/.config/h5mirror/ca.pem, or name it as `ca`");
}

}  // namespace h5mirror::rpc
