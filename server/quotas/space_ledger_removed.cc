// The removed files of accounts, and which of them are to go before their time ends.
#include "server/quotas/space_ledger.h"

namespace h5mirror::server {

void SpaceLedger::Removed(const RemovedSpace& file) {
  if (!is_on()) return;
  absl::MutexLock lock(&mutex_);
  Drop(file.name);
  AddRemoved(file);
}

void SpaceLedger::BeginListing() {
  absl::MutexLock lock(&mutex_);
  is_listing_ = true;
}

void SpaceLedger::AddListed(const RemovedSpace& file) {
  if (!is_on()) return;
  absl::MutexLock lock(&mutex_);
  if (!gone_since_listing_.contains(file.id)) AddRemoved(file);
}

void SpaceLedger::EndListing() {
  absl::MutexLock lock(&mutex_);
  is_listing_ = false;
  gone_since_listing_.clear();
}

void SpaceLedger::AddRemoved(const RemovedSpace& file) {
  Place place = PlaceOf(file.name);
  if (place.rule == nullptr) return;
  const auto [entry, is_new] = removed_.try_emplace(file.id);
  if (!is_new) return;
  Account& account = MakeAccount(std::move(place));
  account.removed.emplace(std::pair(file.removed, file.id), file);
  account.removed_bytes += file.bytes;
  entry->second = {file.removed, &account};
  with_removed_.insert(&account);
}

void SpaceLedger::DropRemoved(std::string_view id) {
  if (!is_on()) return;
  absl::MutexLock lock(&mutex_);
  if (is_listing_) gone_since_listing_.insert(std::string(id));
  const auto entry = removed_.find(std::string(id));
  if (entry == removed_.end()) return;
  Account& account = *entry->second.account;
  const auto file = account.removed.find({entry->second.removed, entry->first});
  account.removed_bytes -= file->second.bytes;
  account.removed.erase(file);
  removed_.erase(entry);
  if (!account.removed.empty()) return;
  with_removed_.erase(&account);
  DropIfEmpty(account);
}

std::vector<std::string> SpaceLedger::RemovedIds() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> ids;
  ids.reserve(removed_.size());
  for (const auto& [id, entry] : removed_) ids.push_back(id);
  return ids;
}

std::optional<SpaceLedger::RemovedBeyond> SpaceLedger::OldestRemovedBeyondLimit() const {
  if (!is_on()) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  for (const Account* account : with_removed_) {
    if (!Holds(account->place)) continue;
    const QuotaRule& rule = *account->place.rule;
    const bool is_many = rule.max_files > 0 && account->removed.size() > rule.max_files;
    const bool is_large = rule.removed_bytes > 0 && account->removed_bytes > rule.removed_bytes;
    // The newest stays, so that a mistake can be taken back.
    if ((!is_many && !is_large) || account->removed.size() < 2) continue;
    const auto& newest = account->removed.rbegin()->second;
    for (const auto& [age, file] : account->removed) {
      // Where only bytes are too many, one that gives none stays.
      if (file.id == newest.id) break;
      if (is_many || file.bytes > 0) return RemovedBeyond{file, UseOf(*account)};
    }
  }
  return std::nullopt;
}

}  // namespace h5mirror::server
