// The agent's socket: a gRPC server for each user of this host, so that each call has a user.
#ifndef H5MIRROR_SWMR_AGENT_USER_SERVERS_H_
#define H5MIRROR_SWMR_AGENT_USER_SERVERS_H_

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/owned_fd.h"
#include "grpcpp/server.h"
#include "swmr_agent/agent.h"

namespace h5mirror::agent {

// gRPC does not tell through which connection of a Unix socket a call came. So a thread of ours
// accepts connections, asks the kernel for the user at the other end, and hands each connection to
// the gRPC server of its user. Each user has threads of its own. Thread-safe.
class UserServers {
 public:
  // Users that are served at once. One more takes the place of a user that has made no call for
  // kIdle; if there is none, its connection is closed, and its readers go to their servers.
  static constexpr size_t kUsersMax = 256;
  static constexpr absl::Duration kIdle = absl::Minutes(1);
  // Of one user.
  static constexpr int kCallThreadsMax = 256;

  // `agent` must outlive this. kUnavailable names `path`, and why.
  static absl::StatusOr<std::unique_ptr<UserServers>> Listen(const std::filesystem::path& path,
                                                             mode_t mode_bits, Agent& agent,
                                                             size_t users_max = kUsersMax);
  // As Shutdown() with no time left.
  ~UserServers();
  UserServers(const UserServers&) = delete;

  // Accepts no more, and ends all servers. Calls have until `deadline`.
  void Shutdown(absl::Time deadline);
  size_t user_count();

 private:
  struct User;

  UserServers(Agent& agent, size_t users_max, OwnedFd listener, OwnedFd stop);
  void Run();
  // False: there are no descriptors left just now.
  bool AcceptAll();
  void TakeIn(OwnedFd fd);
  // Null: there are too many users, or gRPC makes no server.
  User* FindOrMake(uid_t uid) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // False: each has made a call lately.
  bool DropIdleUser() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Agent& agent_;
  const size_t users_max_;
  OwnedFd listener_;  // the thread's own
  const OwnedFd stop_;
  absl::Mutex mutex_;
  std::map<uid_t, std::unique_ptr<User>> users_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_USER_SERVERS_H_
