// The leases: the right to write a file. They live in memory only. After a restart every writer
// asks again, and the store's tokens (durable before they are granted) fence the old writers.
#ifndef H5MIRROR_SERVER_STATE_LEASE_TABLE_H_
#define H5MIRROR_SERVER_STATE_LEASE_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "onion_store/types.h"

namespace h5mirror::server {

// A writer, as described to others.
struct LeaseHolder {
  store::SessionId session_id{};
  std::string claimed_user;
  std::string verified_user;
  std::string host;
  std::string program;
  uint32_t pid = 0;
  std::string peer;
  absl::Time since;
  store::Token token = 0;  // 0 until the store has granted it

  // "alice (python3, pid 123) on node7 since 2026-11-03 14:00:00 UTC".
  std::string Describe() const;
};

// Identifies one lease; never 0.
using LeaseId = uint64_t;

// Thread-safe. Never calls a holder with its lock held.
class LeaseTable {
 public:
  // A holder's `revoke` is called at most once, by the thread that takes the lease away. The holder
  // then ends its session with that status.
  using Revoke = std::function<void(absl::Status)>;

  // `clock` must outlive the table. A lease that was not renewed for `ttl` may be taken by others.
  LeaseTable(Clock& clock, absl::Duration ttl) : clock_(clock), ttl_(ttl) {}

  struct ClaimResult {
    LeaseId lease = 0;                  // 0: busy
    std::optional<LeaseHolder> holder;  // if busy
  };

  // Takes the lease of `name` if it is free or expired, or if the same session has it: its former
  // stream may have broken without the server's notice. Revokes the former holder with kAborted.
  // The caller then acquires the store's token, which fences that holder.
  ClaimResult Claim(std::string_view name, LeaseHolder holder, Revoke revoke);

  // Waits at most `timeout` until the session `holder` gives the lease of `name` back. Returns at
  // once if `holder` does not have it.
  void AwaitRelease(std::string_view name, const store::SessionId& holder, absl::Duration timeout);

  // Takes the lease from any holder ("h5mirror rollback --revoke-lease").
  LeaseId Seize(std::string_view name, LeaseHolder holder, std::string_view why);

  void SetToken(std::string_view name, LeaseId lease, store::Token token);

  // A sign of life of the holder.
  void Renew(std::string_view name, LeaseId lease);

  // Gives the lease back. Does nothing if another holder has it by now.
  void Release(std::string_view name, LeaseId lease);

  // `on_free` is called, with no lock held, for each file whose lease has become free. It must not
  // wait. To be set before the first lease is given.
  void SetOnFree(std::function<void(const std::string& name)> on_free) {
    on_free_ = std::move(on_free);
  }

  // Revokes all leases that have expired, with kAborted.
  // Returns how many.
  int RevokeExpired();

  std::optional<LeaseHolder> HolderOf(std::string_view name) const;
  size_t size() const;
  absl::Duration ttl() const { return ttl_; }

 private:
  struct Entry {
    LeaseId lease = 0;
    LeaseHolder holder;
    Revoke revoke;
    absl::Duration heard;  // by clock_.Monotonic()
  };

  // A lease without a revoke function belongs to a call of this server, and does not expire.
  bool Expired(const Entry& entry) const {
    return entry.revoke && clock_.Monotonic() - entry.heard > ttl_;
  }
  // Puts an entry in. Returns the revoke function of the former one, if any.
  std::pair<LeaseId, Revoke> Put(std::string_view name, LeaseHolder holder, Revoke revoke)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Clock& clock_;
  const absl::Duration ttl_;
  std::function<void(const std::string& name)> on_free_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
  LeaseId last_lease_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_STATE_LEASE_TABLE_H_
