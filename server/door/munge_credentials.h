// Callers by credentials of munge. Each munged decodes a credential once, and a client shows one
// with many calls. So decoded credentials are remembered until they expire. Threads of their own
// ask munged, which may hang, so that no other thread waits for it, not even the server's end.
#ifndef H5MIRROR_SERVER_DOOR_MUNGE_CREDENTIALS_H_
#define H5MIRROR_SERVER_DOOR_MUNGE_CREDENTIALS_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/munge_library.h"

namespace h5mirror::server {

// A credential that munged has decoded.
struct MungeIdentity {
  uid_t uid = 0;
  absl::Time expires = absl::InfinitePast();  // no call begins from then on
  absl::Time ends = absl::InfinitePast();     // running calls end
};

// Thread-safe; its lock is a leaf. Credentials are remembered by their digests.
class MungeCredentials {
 public:
  using Decode = std::function<absl::StatusOr<MungeClaim>(const std::string& credential)>;
  using Found = absl::StatusOr<std::shared_ptr<const MungeIdentity>>;

  // Running calls end this long after their credential has expired. Until then the server checks
  // that the user still exists, and its groups.
  static constexpr absl::Duration kGrace = absl::Hours(24);
  // A refusal is remembered for this long, because one call asks for it twice.
  static constexpr absl::Duration kKeepFailure = absl::Seconds(10);
  static constexpr size_t kFailuresMax = 1024;
  // The most bytes of a credential. Those of h5mirror clients have some 200.
  static constexpr size_t kBytesMax = 1024;
  // Credentials that wait for munged. With more, calls hear kUnavailable.
  static constexpr size_t kWaitingMax = 256;
  // The most credentials remembered. A user's oldest are forgotten first; its clients then make new
  // ones.
  static constexpr size_t kKnownMax = 65'536;
  static constexpr size_t kKnownOfUserMax = 8192;

  // `decode` may still be running, and be destroyed, after this.
  explicit MungeCredentials(Decode decode);
  // Waits for a `then` that is being called, but not for munged.
  ~MungeCredentials();

  // The known user of a credential, without waiting; asks munged if it is new.
  // Errors: kUnauthenticated  it does not count; the message says why, and never shows it.
  //         kUnavailable      munged has not answered yet, does not answer, or too many wait for
  //         it.
  Found Find(std::string_view credential);
  // The answer that is there; nullopt: none yet. Asks for nothing.
  std::optional<Found> Peek(std::string_view credential) const;
  // Calls `then` once there is an answer, from a thread of its own; at once, if there is one, if
  // none is to come, or if too many wait for it. `then` is destroyed without a call, if this ends
  // before.
  void Await(std::string_view credential, std::function<void()> then);

  // For calls that run by a credential. kUnauthenticated: it has ended.
  absl::Status StillValid(const MungeIdentity& identity) const;
  // When the next credential that was found ends, or one did in the last 2 s:
  // LivingIdentities::NextEnd(). Forgets expired ones, so call it from time to time.
  absl::Time NextExpiry() const;
  // The users whose calls run, or may begin.
  std::vector<uid_t> Users() const;

 private:
  struct State;
  static void Run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;  // the threads' too: they may outlive this
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_DOOR_MUNGE_CREDENTIALS_H_
