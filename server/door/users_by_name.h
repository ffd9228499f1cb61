// Users of this host by name, for a caller that acts for users: h5mirror-agent.
#ifndef H5MIRROR_SERVER_DOOR_USERS_BY_NAME_H_
#define H5MIRROR_SERVER_DOOR_USERS_BY_NAME_H_

#include <sys/types.h>

#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "server/door/unix_users.h"

namespace h5mirror::server {

// Asks the name service, and waits for it.
// Errors: kNotFound  this host has no such user; kUnavailable  the name service failed.
absl::StatusOr<uid_t> LookUpUidOfUser(const std::string& name);

// The uid of a name is looked up on the caller's thread. The rest is UnixUsers, with its rules for
// a name service that fails. Thread-safe.
class UsersByName {
 public:
  using LookUp = std::function<absl::StatusOr<uid_t>(const std::string& name)>;

  // An answer counts for kKeep, a failure for kKeepFailure. While the name service fails, the
  // answer before counts for kOutageMax.
  static constexpr absl::Duration kKeep = absl::Minutes(1);
  static constexpr absl::Duration kKeepFailure = absl::Seconds(5);
  static constexpr absl::Duration kOutageMax = absl::Hours(1);
  // The most threads that may wait here for the name service, each for one uid.
  static constexpr int kAskingMax = 4;
  static constexpr size_t kNamesMax = 4096;

  // `users` and `clock` must outlive this.
  UsersByName(UnixUsers& users, Clock& clock, LookUp look_up = LookUpUidOfUser)
      : users_(users), clock_(clock), look_up_(std::move(look_up)) {}

  struct User {
    uid_t uid = 0;
    std::shared_ptr<const UnixUser> user;
  };
  // Waits for the groups for `wait` at most.
  // Errors: kNotFound     this host has no such user.
  //         kUnavailable  the name service failed, or has not answered yet; safe to retry.
  absl::StatusOr<User> Find(const std::string& name, absl::Duration wait);

 private:
  struct Entry {
    absl::StatusOr<uid_t> uid = absl::UnavailableError("the user is being looked up: try again");
    absl::Duration fresh_until;
    absl::Duration answered;  // the last answer that was no failure
  };

  absl::StatusOr<uid_t> UidOf(const std::string& name);
  absl::StatusOr<uid_t> Note(const std::string& name, absl::StatusOr<uid_t> answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  UnixUsers& users_;
  Clock& clock_;
  const LookUp look_up_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  int asking_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_USERS_BY_NAME_H_
