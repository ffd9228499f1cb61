#include "server/door/connection_pacer.h"

#include <algorithm>

namespace h5mirror::server {

void ConnectionPacer::ForgetOld(absl::Duration now) {
  absl::erase_if(addresses_, [now](const auto& each) { return each.second.watched_until <= now; });
}

void ConnectionPacer::NoteCut(const std::string& name, absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  if (addresses_.size() >= names_max_) ForgetOld(now);
  if (addresses_.size() >= names_max_ && !addresses_.contains(name)) return;
  Address& address = addresses_[name];
  address.next_turn = std::max(address.next_turn, now + kSpacing);
  address.watched_until = std::max(address.watched_until, now + kWatch);
}

std::optional<absl::Duration> ConnectionPacer::TakeTurn(const std::string& name,
                                                        absl::Duration now) {
  absl::MutexLock lock(&mutex_);
  const auto found = addresses_.find(name);
  if (found == addresses_.end()) return now;
  Address& address = found->second;
  if (address.watched_until <= now) {
    addresses_.erase(found);
    return now;
  }
  const absl::Duration turn = std::max(now, address.next_turn);
  if (turn - now > kWaitMax) return std::nullopt;
  address.next_turn = turn + kSpacing;
  if (turn > now) address.watched_until = std::max(address.watched_until, turn + kWatch);
  return turn;
}

}  // namespace h5mirror::server
