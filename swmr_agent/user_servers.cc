#include "swmr_agent/user_servers.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_posix.h"
#include "rpc/channel.h"
#include "spdlog/spdlog.h"
#include "swmr_agent/service.h"
#include "swmr_agent/socket_place.h"

namespace h5mirror::agent {
namespace {

// Without descriptors, no connection is accepted for so long.
constexpr int kPauseMs = 1000;
// After so many connections the thread looks whether it is to stop.
constexpr int kAcceptsAtOnce = 64;

}  // namespace

struct UserServers::User {
  User(Agent& agent, uid_t uid) : snapshots(agent, uid), versions(agent, uid) {}

  absl::Time LastUse() const {
    return std::max({accepted, snapshots.last_call(), versions.last_call()});
  }

  SnapshotsFromMemory snapshots;
  VersionsFromMemory versions;
  absl::Time accepted = absl::Now();  // the last connection
  std::unique_ptr<grpc::Server> server;
};

absl::StatusOr<std::unique_ptr<UserServers>> UserServers::Listen(const std::filesystem::path& path,
                                                                 mode_t mode_bits, Agent& agent,
                                                                 size_t users_max) {
  H5M_ASSIGN_OR_RETURN(const auto place, SocketPlace::Prepare(path));
  H5M_ASSIGN_OR_RETURN(OwnedFd listener, ListenAt(*place));
  OwnedFd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid()) return ErrnoToStatus(errno, "listen for readers");
  H5M_RETURN_IF_ERROR(place->Publish(mode_bits));
  return std::unique_ptr<UserServers>(
      new UserServers(agent, users_max, std::move(listener), std::move(stop)));
}

UserServers::UserServers(Agent& agent, size_t users_max, OwnedFd listener, OwnedFd stop)
    : agent_(agent),
      users_max_(users_max),
      listener_(std::move(listener)),
      stop_(std::move(stop)),
      thread_([this] {
        pthread_setname_np(pthread_self(), "h5m-accept");
        Run();
      }) {}

UserServers::~UserServers() { Shutdown(absl::InfinitePast()); }

void UserServers::Shutdown(absl::Time deadline) {
  eventfd_write(stop_.get(), 1);
  if (thread_.joinable()) thread_.join();
  std::map<uid_t, std::unique_ptr<User>> users;
  {
    absl::MutexLock lock(&mutex_);
    users.swap(users_);
  }
  for (auto& [uid, user] : users) {
    user->server->Shutdown(absl::ToChronoTime(std::max(deadline, absl::Now())));
    user->server->Wait();
  }
}

size_t UserServers::user_count() {
  absl::MutexLock lock(&mutex_);
  return users_.size();
}

void UserServers::Run() {
  bool accepts = true;
  for (;;) {
    pollfd wanted[] = {{stop_.get(), POLLIN, 0}, {accepts ? listener_.get() : -1, POLLIN, 0}};
    const int ready = poll(wanted, 2, accepts ? -1 : kPauseMs);
    if (wanted[0].revents != 0) break;
    accepts = ready <= 0 || AcceptAll();
  }
  listener_.Reset();
}

bool UserServers::AcceptAll() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    OwnedFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd.valid()) {
      TakeIn(std::move(fd));
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return errno == EAGAIN;
    }
  }
  return true;
}

void UserServers::TakeIn(OwnedFd fd) {
  const std::optional<uid_t> uid = UserOfConnection(fd.get());
  if (!uid) return;
  absl::MutexLock lock(&mutex_);
  User* const user = FindOrMake(*uid);
  if (user == nullptr) return;
  user->accepted = absl::Now();
  grpc::AddInsecureChannelFromFd(user->server.get(), fd.Release());
}

UserServers::User* UserServers::FindOrMake(uid_t uid) {
  if (const auto found = users_.find(uid); found != users_.end()) return found->second.get();
  if (users_.size() >= users_max_ && !DropIdleUser()) {
    spdlog::debug("uid {} is not served: {} other users are", uid, users_max_);
    return nullptr;
  }
  auto user = std::make_unique<User>(agent_, uid);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(rpc::kMaxMessageBytes);
  builder.SetMaxSendMessageSize(rpc::kMaxMessageBytes);
  // Of its own: gRPC ends the process where it has no thread left for a new server.
  builder.SetResourceQuota(grpc::ResourceQuota(StrCat("uid ", uid)).SetMaxThreads(kCallThreadsMax));
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, rpc::kMaxMessageBytes);
  // Readers ping as they do at a server.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.RegisterService(&user->snapshots);
  builder.RegisterService(&user->versions);
  user->server = builder.BuildAndStart();
  if (user->server == nullptr) {
    spdlog::error("uid {} is not served: gRPC makes no server", uid);
    return nullptr;
  }
  return users_.emplace(uid, std::move(user)).first->second.get();
}

bool UserServers::DropIdleUser() {
  const auto idlest =
      std::min_element(users_.begin(), users_.end(), [](const auto& one, const auto& other) {
        return one.second->LastUse() < other.second->LastUse();
      });
  if (idlest == users_.end() || absl::Now() - idlest->second->LastUse() < kIdle) return false;
  // A call that comes at this moment fails, and is made again at the server.
  idlest->second->server->Shutdown(absl::ToChronoTime(absl::Now()));
  idlest->second->server->Wait();
  users_.erase(idlest);
  return true;
}

}  // namespace h5mirror::agent
