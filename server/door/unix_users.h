// The users of this host, by uid: names and groups from the name service, which may be a slow
// network. Threads of its own ask it, so that no other thread waits for it, not even the server's
// end.
#ifndef H5MIRROR_SERVER_DOOR_UNIX_USERS_H_
#define H5MIRROR_SERVER_DOOR_UNIX_USERS_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"

namespace h5mirror::server {

struct UnixUser {
  std::string name;
  std::vector<std::string> groups;

  bool operator==(const UnixUser& other) const = default;
};

// Asks the name service, and waits for it.
// Errors: kNotFound  this host has no such user; kUnavailable  the name service failed.
absl::StatusOr<UnixUser> LookUpUnixUser(uid_t uid);

// Thread-safe.
class UnixUsers {
 public:
  using LookUp = std::function<absl::StatusOr<UnixUser>(uid_t)>;
  using Found = absl::StatusOr<std::shared_ptr<const UnixUser>>;

  // An answer counts for kKeep. Then the name service is asked again. The old answer counts until
  // the new one is there, at most for kCountMax: later the uid may be another person's. A failure
  // counts for kKeepFailure. A failure does not replace an earlier answer, which then counts for
  // kOutageMax. So users go on working, and keep the groups to which tables deny something.
  static constexpr absl::Duration kKeep = absl::Minutes(1);
  static constexpr absl::Duration kKeepFailure = absl::Seconds(5);
  static constexpr absl::Duration kCountMax = absl::Minutes(10);
  static constexpr absl::Duration kOutageMax = absl::Hours(24);
  // A question that waits for so long counts as a failure.
  static constexpr absl::Duration kAnswerMax = absl::Seconds(30);

  // `clock` must outlive this. `look_up` may still be running, and be destroyed, after this.
  explicit UnixUsers(Clock& clock, LookUp look_up = LookUpUnixUser);
  // Does not wait for the name service.
  ~UnixUsers();

  // The answer, without waiting. kUnavailable: none that counts, and it is asked for now.
  Found Find(uid_t uid);
  // The answer that counts, also a failure; nullopt: none. Asks for nothing.
  std::optional<Found> Peek(uid_t uid) const;
  // Calls `then` once there is an answer, from a thread of its own; at once, if there is one.
  // `then` is destroyed without a call, if this ends before.
  void Await(uid_t uid, std::function<void()> then);

  // Asks again for those users of `held` whose answers are due, so that they stay known without
  // calls. Forgets uids without a name. To be called every few seconds.
  void Tend(const std::vector<uid_t>& held);
  // From now on the answers are due: groups may have changed.
  void AskAllAgain();
  // True: since the last call an answer differed from the one before.
  bool TakeChange();

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state, bool asks_for_new);

  const std::shared_ptr<State> state_;  // the threads' too: they may outlive this
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_UNIX_USERS_H_
