// Who may write which file. Leases live in memory only: after a restart every writer asks
// again, and the store's tokens (durable before they are granted) fence the old ones.
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

// A writer, as others are told of it.
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
  // A holder's `revoke` is called at most once, from the thread of the caller that takes the
  // lease away; the holder ends its session with that status.
  using Revoke = std::function<void(absl::Status)>;

  // `clock` must outlive the table. A lease of which nothing was heard for `ttl` may be
  // taken by others.
  LeaseTable(Clock& clock, absl::Duration ttl) : clock_(clock), ttl_(ttl) {}

  struct ClaimResult {
    LeaseId lease = 0;                  // 0: busy
    std::optional<LeaseHolder> holder;  // busy: by whom
  };

  // Takes the lease of `name` where nobody has it, where it has expired, or where the same
  // session has it (its stream broke and the server has not noticed yet). The holder before
  // is revoked with kAborted. The caller then acquires the store's token, which fences it.
  ClaimResult Claim(std::string_view name, LeaseHolder holder, Revoke revoke);

  // Waits at most `timeout` for the session `holder` to give the lease of `name` back; returns at
  // once where another has it or nobody.
  void AwaitRelease(std::string_view name, const store::SessionId& holder, absl::Duration timeout);

  // Takes the lease whoever has it ("h5mirror rollback --revoke-lease").
  LeaseId Seize(std::string_view name, LeaseHolder holder, std::string_view why);

  void SetToken(std::string_view name, LeaseId lease, store::Token token);

  // The holder was heard of.
  void Renew(std::string_view name, LeaseId lease);

  // Gives the lease back; nothing happens when another has it by now.
  void Release(std::string_view name, LeaseId lease);

  // Told, with no lock held, of each file that nobody has a lease of any more. Before the first
  // lease is given; must not wait.
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

  // A lease without a revoke function belongs to a call of this server, which ends it.
  bool Expired(const Entry& entry) const {
    return entry.revoke && clock_.Monotonic() - entry.heard > ttl_;
  }
  // Puts an entry in and returns the revoke function of the one before, if any.
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
