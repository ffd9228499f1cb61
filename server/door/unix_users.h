// The users of this host, by uid: names and groups from the name service, which may be a slow
// network. Threads of its own ask it, so that no other thread waits.
#ifndef H5MIRROR_SERVER_DOOR_UNIX_USERS_H_
#define H5MIRROR_SERVER_DOOR_UNIX_USERS_H_

#include <sys/types.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace h5mirror::server {

struct UnixUser {
  std::string name;
  std::vector<std::string> groups;
};

// Asks the name service, and waits for it.
// Errors: kNotFound  this host has no such user; kUnavailable  the name service failed.
absl::StatusOr<UnixUser> LookUpUnixUser(uid_t uid);

// Thread-safe.
class UnixUsers {
 public:
  using LookUp = std::function<absl::StatusOr<UnixUser>(uid_t)>;
  using Found = absl::StatusOr<std::shared_ptr<const UnixUser>>;

  // An answer counts for so long; then it is asked again, and counts until the next one is there. A
  // failure counts for a shorter time, and does not replace an earlier answer: a group that is lost
  // could be one that a table denies something to.
  static constexpr absl::Duration kKeep = absl::Minutes(1);
  static constexpr absl::Duration kKeepFailure = absl::Seconds(5);

  explicit UnixUsers(Clock& clock, LookUp look_up = LookUpUnixUser);
  // Waits for the questions that the name service has in hand.
  ~UnixUsers();

  // The answer, without waiting. kUnavailable: none yet, and it is asked for now.
  Found Find(uid_t uid);
  // True: there is an answer, also a failure.
  bool Knows(uid_t uid) const;
  // Calls `then` once there is an answer, from a thread of its own; at once, if there is one.
  void Await(uid_t uid, std::function<void()> then);

 private:
  struct Entry {
    Found found = absl::UnavailableError("the user's name is being looked up: try again");
    bool is_known = false;
    bool is_asked = false;  // now
    absl::Duration fresh_until;
    std::vector<std::function<void()>> waiting;
  };

  void AskIfDue(uid_t uid, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Ask(uid_t uid);
  void Run();
  bool HasNews() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return ends_ || !asked_.empty(); }

  static constexpr int kThreads = 2;

  Clock& clock_;
  const LookUp look_up_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<uid_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::deque<uid_t> asked_ ABSL_GUARDED_BY(mutex_);  // for a thread
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);  // none before the first question
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_UNIX_USERS_H_
