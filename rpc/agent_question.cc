// One question over a Unix socket, and descriptors with its answer.
#include "rpc/agent_question.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/agent_socket.h"
#include "rpc/cut_map.h"

namespace h5mirror::rpc {
namespace {

absl::Status Away(std::string_view what) {
  return absl::UnavailableError(StrCat("ask the agent for a map: ", what));
}

// The peer's bytes become metadata. So the peer must be the owner of the agent's socket, this user
// or root.
absl::Status CheckPeer(int fd, const std::string& path) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Away(std::strerror(errno));
  }
  if (peer.uid == 0 || peer.uid == geteuid()) return absl::OkStatus();
  struct stat agent {};
  const bool is_agents =
      path.ends_with(kMapSocketSuffix) &&
      lstat(path.substr(0, path.size() - kMapSocketSuffix.size()).c_str(), &agent) == 0 &&
      S_ISSOCK(agent.st_mode) && agent.st_uid == peer.uid;
  return is_agents ? absl::OkStatus() : Away("somebody else listens there");
}

absl::StatusOr<OwnedFd> Connect(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) return Away("its socket's path is too long");
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  OwnedFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Where it has a long queue this fails at once.
  if (fd.get() < 0 || connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)) != 0) {
    return Away(std::strerror(errno));
  }
  H5M_RETURN_IF_ERROR(CheckPeer(fd.get(), path));
  return fd;
}

// Waits until there is something to be read. kDeadlineExceeded: nothing came.
absl::Status Await(int fd, absl::Time deadline) {
  for (;;) {
    const int64_t left = absl::ToInt64Milliseconds(deadline - absl::Now());
    pollfd wanted{fd, POLLIN, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 60'000)));
    if (ready > 0) return absl::OkStatus();
    if (ready == 0) {
      return absl::DeadlineExceededError("ask the agent for a map: it does not answer");
    }
    if (errno != EINTR) return Away(std::strerror(errno));
  }
}

// The answer is small, and comes in one piece.
absl::StatusOr<std::vector<OwnedFd>> Receive(int fd, absl::Span<char> answer, size_t* length) {
  iovec bytes{answer.data(), answer.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(kMapDescriptorsMax * sizeof(int))];
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof(room);
  const ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  std::vector<OwnedFd> received;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); got >= 0 && part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    std::vector<int> fds((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(fds.data(), CMSG_DATA(part), fds.size() * sizeof(int));
    for (const int each : fds) received.emplace_back(each);
  }
  if (got <= 0) return Away("it has hung up");
  *length = static_cast<size_t>(got);
  if ((message.msg_flags & MSG_CTRUNC) != 0) {
    return absl::InvalidArgumentError("ask the agent for a map: its answer makes no sense");
  }
  return received;
}

}  // namespace

absl::StatusOr<AgentAnswer> AskAgent(const std::string& socket_path, const CutMapQuestion& question,
                                     absl::Time deadline, absl::Span<char> answer) {
  H5M_ASSIGN_OR_RETURN(OwnedFd connection, Connect(socket_path));
  const std::string bytes = EncodeQuestion(question);
  const ssize_t sent = send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(bytes.size())) return Away("it does not listen");
  H5M_RETURN_IF_ERROR(Await(connection.get(), deadline));
  AgentAnswer received;
  H5M_ASSIGN_OR_RETURN(received.memories,
                       Receive(connection.get(), answer, &received.length_bytes));
  received.connection = std::move(connection);
  return received;
}

absl::StatusOr<std::unique_ptr<CutMap>> CutMap::Ask(const std::string& socket_path,
                                                    const CutMapQuestion& question,
                                                    uint64_t size_bytes, absl::Time deadline) {
  CutMapAnswer answer{};
  H5M_ASSIGN_OR_RETURN(AgentAnswer got,
                       AskAgent(socket_path, question, deadline,
                                {reinterpret_cast<char*>(&answer), sizeof(answer)}));
  if (got.length_bytes != sizeof(answer) ||
      std::memcmp(answer.magic, kAnswerMagic, sizeof(answer.magic)) != 0 ||
      answer.descriptor_count != got.memories.size()) {
    return absl::InvalidArgumentError("ask the agent for a map: its answer makes no sense");
  }
  if (got.memories.empty()) return absl::NotFoundError("the agent has nothing to map of this cut");
  return Map(got.memories, size_bytes, std::move(got.connection));
}

}  // namespace h5mirror::rpc
