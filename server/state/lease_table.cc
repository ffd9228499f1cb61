#include "server/state/lease_table.h"

#include "base/human.h"
#include "base/strings.h"

namespace h5mirror::server {

std::string LeaseHolder::Describe() const {
  std::string text = claimed_user.empty() ? std::string("somebody") : claimed_user;
  if (!verified_user.empty()) StrAppend(&text, " [verified ", verified_user, "]");
  if (!program.empty()) StrAppend(&text, " (", program, ", pid ", pid, ")");
  if (!host.empty()) StrAppend(&text, " on ", host);
  return StrCat(text, " since ", HumanTime(since));
}

std::pair<LeaseId, LeaseTable::Revoke> LeaseTable::Put(std::string_view name, LeaseHolder holder,
                                                       Revoke revoke) {
  Entry& entry = entries_[std::string(name)];
  Revoke before = std::move(entry.revoke);
  entry = Entry{++last_lease_, std::move(holder), std::move(revoke), clock_.Monotonic()};
  return {entry.lease, std::move(before)};
}

LeaseTable::ClaimResult LeaseTable::Claim(std::string_view name, LeaseHolder holder,
                                          Revoke revoke) {
  ClaimResult result;
  Revoke before;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = entries_.find(name);
    if (found != entries_.end() && !Expired(found->second) &&
        found->second.holder.session_id != holder.session_id) {
      result.holder = found->second.holder;
      return result;
    }
    std::tie(result.lease, before) = Put(name, std::move(holder), std::move(revoke));
  }
  if (before) before(absl::AbortedError(StrCat(name, ": another stream was given the lease")));
  return result;
}

void LeaseTable::AwaitRelease(std::string_view name, const store::SessionId& holder,
                              absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto released = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = entries_.find(name);
    return found == entries_.end() || found->second.holder.session_id != holder;
  };
  clock_.Await(mutex_, absl::Condition(&released), timeout);
}

LeaseId LeaseTable::Seize(std::string_view name, LeaseHolder holder, std::string_view why) {
  LeaseId lease = 0;
  Revoke before;
  {
    absl::MutexLock lock(&mutex_);
    std::tie(lease, before) = Put(name, std::move(holder), nullptr);
  }
  if (before) before(absl::AbortedError(StrCat(name, ": the lease was revoked: ", why)));
  return lease;
}

void LeaseTable::SetToken(std::string_view name, LeaseId lease, store::Token token) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  if (found != entries_.end() && found->second.lease == lease) found->second.holder.token = token;
}

void LeaseTable::Renew(std::string_view name, LeaseId lease) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  if (found != entries_.end() && found->second.lease == lease) {
    found->second.heard = clock_.Monotonic();
  }
}

void LeaseTable::Release(std::string_view name, LeaseId lease) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = entries_.find(name);
    if (found == entries_.end() || found->second.lease != lease) return;
    entries_.erase(found);
  }
  if (on_free_) on_free_(std::string(name));
}

int LeaseTable::RevokeExpired() {
  std::vector<std::pair<std::string, Revoke>> expired;
  {
    absl::MutexLock lock(&mutex_);
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      if (Expired(entry->second)) {
        expired.emplace_back(entry->first, std::move(entry->second.revoke));
        entry = entries_.erase(entry);
      } else {
        ++entry;
      }
    }
  }
  for (auto& [name, revoke] : expired) {
    if (on_free_) on_free_(name);
    revoke(absl::AbortedError(StrCat(name, ": the lease expired: nothing was received for ",
                                     HumanDuration(ttl_), "; the session can be resumed")));
  }
  return static_cast<int>(expired.size());
}

std::optional<LeaseHolder> LeaseTable::HolderOf(std::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end() || Expired(found->second)) return std::nullopt;
  return found->second.holder;
}

size_t LeaseTable::size() const {
  absl::MutexLock lock(&mutex_);
  return entries_.size();
}

}  // namespace h5mirror::server
