#include "server/quotas/space_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "base/human.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace h5mirror::server {
namespace {

// An account is told of again only after it has fallen below this.
constexpr int kFarPercent = 85;

// A file with less than this missing on the disk has no holes: its head may lie compressed.
constexpr uint64_t kHolesMin = uint64_t{1} << 20;
constexpr size_t kRefusalsMax = 10'000;

uint64_t HashOf(std::string_view name) { return absl::HashOf(ToAbsl(name)); }

int PercentOf(uint64_t used, uint64_t limit) {
  if (limit == 0) return 0;
  return static_cast<int>(
      std::min(static_cast<double>(used) / static_cast<double>(limit) * 100, 1e6));
}

int FullestPercentOf(const SpaceSizes& sizes, uint64_t files, const QuotaRule& rule) {
  return std::max({PercentOf(sizes.head_bytes, rule.head_bytes),
                   PercentOf(sizes.history_bytes, rule.history_bytes),
                   PercentOf(sizes.archived_bytes, rule.archived_bytes),
                   PercentOf(files, rule.max_files), PercentOf(sizes.tags, rule.max_tags)});
}

// Whether one directory is the other, or lies in it; "" is the root.
bool Overlap(std::string_view one, std::string_view other) {
  if (one.size() > other.size()) std::swap(one, other);
  return one.empty() ||
         (other.starts_with(one) && (one.size() == other.size() || other[one.size()] == '/'));
}

std::string AccountName(std::string_view directory) {
  return directory.empty() ? "the whole server" : Quoted(directory);
}

constexpr std::string_view kRemoveFiles = "the server's files stay as they are; remove files there";
constexpr std::string_view kStaysOnDisk =
    "its history stays on the disk; prune or remove files there";
constexpr std::string_view kUntag = "no tag is made; untag versions there";

// "takes 9.8 GiB of head_bytes = 10 GiB, by [[quota]] (h5mirrord.toml:12), and ...: " and the way
// out
absl::Status Exceeded(const SpaceUse& use, std::string_view key, std::string_view used,
                      std::string_view limit, std::string_view wanted,
                      std::string_view way_out = kRemoveFiles) {
  return absl::ResourceExhaustedError(StrCat("quota: ", AccountName(use.directory), " takes ", used,
                                             " of ", key, " = ", limit, ", by ", use.rule.Label(),
                                             ", and ", wanted, ": ", way_out,
                                             ", or let the server's operator raise the limit"));
}

absl::Status TooManyTags(const SpaceUse& use, std::string_view name, uint64_t more) {
  return Exceeded(use, "max_tags", StrCat(use.sizes.tags), StrCat(use.rule.max_tags),
                  StrCat(Quoted(name), " needs ", more, " more"), kUntag);
}

absl::Status TooManyFiles(const SpaceUse& use, std::string_view name) {
  return Exceeded(use, "max_files", StrCat(use.files), StrCat(use.rule.max_files),
                  StrCat(Quoted(name), " would be one more"));
}

absl::Status TooManyBytes(const SpaceUse& use, std::string_view key, uint64_t used, uint64_t limit,
                          std::string_view name, uint64_t more) {
  return Exceeded(use, key, HumanBytes(used), HumanBytes(limit),
                  StrCat(Quoted(name), " needs ", HumanBytes(more), " more"));
}

bool Exceeds(uint64_t used, uint64_t more, uint64_t limit) {
  return limit > 0 && more > 0 && (used >= limit || more > limit - used);
}

}  // namespace

int SpaceUse::FullestPercent() const { return FullestPercentOf(sizes, files, rule); }

void SpaceLedger::SetRules(std::vector<QuotaRule> rules) {
  absl::MutexLock lock(&mutex_);
  if (rules == rules_ && rules_number_ > 0) return;  // All that was counted holds.
  Clear();
  rules_ = std::move(rules);
  is_on_ = !rules_.empty();
}

void SpaceLedger::CountAgain(std::string_view cell) {
  absl::MutexLock lock(&mutex_);
  Forget(cell);
  uncounted_.emplace(cell);
  ++rules_number_;
}

void SpaceLedger::Forget(std::string_view cell) {
  const auto is_forgotten = [cell](const Account& account) {
    return account.place.rule == nullptr || Overlap(account.place.directory, cell);
  };
  for (auto each = entries_.begin(); each != entries_.end();) {
    const auto entry = each++;
    if (!is_forgotten(*entry->second.account)) continue;
    SetSizes(entry->second, {});
    entries_.erase(entry);
  }
  for (auto each = removed_.begin(); each != removed_.end();) {
    const auto entry = each++;
    if (is_forgotten(*entry->second.account)) removed_.erase(entry);
  }
  for (auto each = accounts_.begin(); each != accounts_.end();) {
    const auto account = each++;
    if (!is_forgotten(*account->second)) continue;
    with_removed_.erase(account->second.get());
    accounts_.erase(account);
  }
  refusals_.clear();
}

bool SpaceLedger::Holds(const Place& place) const {
  if (!is_counted_ || place.rule == nullptr) return false;
  return std::none_of(uncounted_.begin(), uncounted_.end(),
                      [&place](const std::string& cell) { return Overlap(place.directory, cell); });
}

void SpaceLedger::Clear() {
  // The entries first: they name accounts, and accounts name rules.
  entries_.clear();
  refusals_.clear();
  removed_.clear();
  with_removed_.clear();
  accounts_.clear();
  ++rules_number_;
  is_counted_ = false;
  uncounted_.clear();
  history_bytes_ = 0;
  with_history_ = 0;
}

uint64_t SpaceLedger::rules_number() const {
  absl::MutexLock lock(&mutex_);
  return rules_number_;
}

void SpaceLedger::FinishCount(uint64_t rules_number) {
  absl::MutexLock lock(&mutex_);
  if (rules_number != rules_number_) return;
  is_counted_ = true;
  uncounted_.clear();
}

bool SpaceLedger::is_counted() const {
  absl::MutexLock lock(&mutex_);
  return is_counted_ && uncounted_.empty();
}

SpaceUse SpaceLedger::UseOf(const Account& account, const Place& place) {
  return {place.directory,        account.sizes,
          account.files,          place.rule == nullptr ? QuotaRule{} : *place.rule,
          account.removed.size(), account.removed_bytes};
}

SpaceLedger::Place SpaceLedger::PlaceOf(std::string_view name) const {
  for (size_t i = 0; i < rules_.size(); ++i) {
    std::optional<std::string> directory = rules_[i].AccountOf(name);
    if (!directory) continue;
    std::string key = StrCat(i, ":", *directory);
    return {std::move(key), *std::move(directory), &rules_[i]};
  }
  return {};
}

const SpaceLedger::Account& SpaceLedger::AccountAt(const Place& place) const {
  static const Account* const kEmpty = new Account;
  const auto found = accounts_.find(place.key);
  return found == accounts_.end() ? *kEmpty : *found->second;
}

const SpaceLedger::Entry* SpaceLedger::Find(std::string_view name) const {
  const auto found = entries_.find(HashOf(name));
  return found == entries_.end() ? nullptr : &found->second;
}

SpaceLedger::Entry& SpaceLedger::EntryFor(std::string_view name) {
  const auto [found, is_new] = entries_.try_emplace(HashOf(name));
  if (!is_new) return found->second;
  Account& account = MakeAccount(PlaceOf(name));
  ++account.files;
  found->second.account = &account;
  return found->second;
}

SpaceLedger::Account& SpaceLedger::MakeAccount(Place place) {
  std::unique_ptr<Account>& account = accounts_[place.key];
  if (account == nullptr) account = std::make_unique<Account>();
  account->place = std::move(place);
  return *account;
}

void SpaceLedger::DropIfEmpty(const Account& account) {
  if (account.files > 0 || !account.removed.empty()) return;
  const std::string key = account.place.key;
  accounts_.erase(key);
}

void SpaceLedger::Drop(std::string_view name) {
  const auto found = entries_.find(HashOf(name));
  if (found == entries_.end()) return;
  SetSizes(found->second, {});
  Account& account = *found->second.account;
  entries_.erase(found);
  --account.files;
  DropIfEmpty(account);
}

void SpaceLedger::SetSizes(Entry& entry, const SpaceSizes& sizes) {
  SpaceSizes& sum = entry.account->sizes;
  const bool had_history = sum.history_bytes > 0;
  sum.head_bytes += sizes.head_bytes - entry.sizes.head_bytes;
  sum.history_bytes += sizes.history_bytes - entry.sizes.history_bytes;
  sum.tags += sizes.tags - entry.sizes.tags;
  sum.archived_bytes += sizes.archived_bytes - entry.sizes.archived_bytes;
  history_bytes_ += sizes.history_bytes - entry.sizes.history_bytes;
  entry.sizes = sizes;
  const bool has_history = sum.history_bytes > 0;
  if (has_history && !had_history) ++with_history_;
  if (had_history && !has_history) --with_history_;
}

std::optional<SpaceUse> SpaceLedger::NearNews(Account& account) {
  if (!on_near_ || !Holds(account.place)) return std::nullopt;
  const int percent = FullestPercentOf(account.sizes, account.files, *account.place.rule);
  if (percent < kFarPercent) account.is_near = false;
  if (percent < kNearPercent || std::exchange(account.is_near, true)) return std::nullopt;
  return UseOf(account);
}

absl::Status SpaceLedger::AddFile(std::string_view name) {
  if (!is_on()) return absl::OkStatus();
  std::optional<SpaceUse> news;
  {
    absl::MutexLock lock(&mutex_);
    if (Find(name) != nullptr) return absl::OkStatus();
    const Place place = PlaceOf(name);
    const Account& account = AccountAt(place);
    if (Holds(place) && Exceeds(account.files, 1, place.rule->max_files)) {
      return TooManyFiles(UseOf(account, place), name);
    }
    news = NearNews(*EntryFor(name).account);
  }
  if (news) on_near_(*news);
  return absl::OkStatus();
}

absl::Status SpaceLedger::Grow(std::string_view name, uint64_t more_bytes, uint64_t end_bytes) {
  if (!is_on() || more_bytes == 0) return absl::OkStatus();
  std::optional<SpaceUse> news;
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = EntryFor(name);
    Account& account = *entry.account;
    const QuotaRule* const rule = account.place.rule;
    if (Holds(account.place) && Exceeds(account.sizes.head_bytes, more_bytes, rule->head_bytes)) {
      if (refusals_.size() >= kRefusalsMax) refusals_.clear();
      refusals_[HashOf(name)] = {entry.sizes.head_bytes + more_bytes, end_bytes};
      return TooManyBytes(UseOf(account), "head_bytes", account.sizes.head_bytes, rule->head_bytes,
                          name, more_bytes);
    }
    SpaceSizes grown = entry.sizes;
    grown.head_bytes += more_bytes;
    SetSizes(entry, grown);
    entry.grown_bytes += more_bytes;
    news = NearNews(account);
  }
  if (news) on_near_(*news);
  return absl::OkStatus();
}

absl::Status SpaceLedger::Fill(std::string_view name, uint64_t end_bytes) {
  if (!is_on()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  const Entry* const entry = Find(name);
  if (entry == nullptr || !Holds(entry->account->place)) return absl::OkStatus();
  const Account& account = *entry->account;
  const uint64_t limit = account.place.rule->head_bytes;
  const bool has_holes = entry->sizes.head_bytes + kHolesMin < end_bytes;
  if (!has_holes || !Exceeds(account.sizes.head_bytes, 1, limit)) return absl::OkStatus();
  return TooManyBytes(UseOf(account), "head_bytes", account.sizes.head_bytes, limit, name,
                      end_bytes - entry->sizes.head_bytes);
}

absl::Status SpaceLedger::MayBegin(std::string_view name, uint64_t local_bytes) {
  if (!is_on()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  const auto found = refusals_.find(HashOf(name));
  if (found == refusals_.end()) return absl::OkStatus();
  const Refusal& refusal = found->second;
  const Entry* const entry = Find(name);
  const uint64_t has_bytes = entry == nullptr ? 0 : entry->sizes.head_bytes;
  const Place place = PlaceOf(name);
  const Account& account = AccountAt(place);
  uint64_t more_bytes = 0;
  if (local_bytes >= refusal.end_bytes) {
    const uint64_t wanted_bytes = refusal.head_bytes + (local_bytes - refusal.end_bytes);
    more_bytes = wanted_bytes - std::min(wanted_bytes, has_bytes);
  }
  if (Holds(place) && Exceeds(account.sizes.head_bytes, more_bytes, place.rule->head_bytes)) {
    return TooManyBytes(UseOf(account, place), "head_bytes", account.sizes.head_bytes,
                        place.rule->head_bytes, name, more_bytes);
  }
  refusals_.erase(found);
  return absl::OkStatus();
}

absl::Status SpaceLedger::MayHold(std::string_view name, const SpaceSizes& sizes,
                                  std::string_view from) {
  if (!is_on()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  const Place place = PlaceOf(name);
  if (!Holds(place)) return absl::OkStatus();
  const Entry* const mover = from.empty() ? nullptr : Find(from);
  if (mover != nullptr && mover->account->place.key == place.key) return absl::OkStatus();
  const SpaceUse use = UseOf(AccountAt(place), place);
  const Entry* const holder = Find(name);
  if (holder == nullptr && Exceeds(use.files, 1, use.rule.max_files)) {
    return TooManyFiles(use, name);
  }
  const SpaceSizes had = holder == nullptr ? SpaceSizes() : holder->sizes;
  const auto more = [](uint64_t wanted, uint64_t has) { return wanted > has ? wanted - has : 0; };
  const uint64_t more_head = more(sizes.head_bytes, had.head_bytes);
  if (Exceeds(use.sizes.head_bytes, more_head, use.rule.head_bytes)) {
    return TooManyBytes(use, "head_bytes", use.sizes.head_bytes, use.rule.head_bytes, name,
                        more_head);
  }
  const uint64_t more_history = more(sizes.history_bytes, had.history_bytes);
  if (Exceeds(use.sizes.history_bytes, more_history, use.rule.history_bytes)) {
    return TooManyBytes(use, "history_bytes", use.sizes.history_bytes, use.rule.history_bytes, name,
                        more_history);
  }
  const uint64_t more_tags = more(sizes.tags, had.tags);
  if (Exceeds(use.sizes.tags, more_tags, use.rule.max_tags)) {
    return TooManyTags(use, name, more_tags);
  }
  return absl::OkStatus();
}

absl::Status SpaceLedger::MayArchive(std::string_view name) const {
  if (!is_on()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  const Place place = PlaceOf(name);
  if (place.rule == nullptr || place.rule->archived_bytes == 0) return absl::OkStatus();
  if (!Holds(place)) {
    return absl::UnavailableError(
        StrCat("quota: what ", AccountName(place.directory),
               " has in the archive is not counted yet: try again later"));
  }
  const SpaceUse use = UseOf(AccountAt(place), place);
  if (!Exceeds(use.sizes.archived_bytes, 1, use.rule.archived_bytes)) return absl::OkStatus();
  return Exceeded(use, "archived_bytes", HumanBytes(use.sizes.archived_bytes),
                  HumanBytes(use.rule.archived_bytes),
                  StrCat("no more of ", Quoted(name), " goes to the archive"), kStaysOnDisk);
}

absl::Status SpaceLedger::AddTag(std::string_view name) {
  if (!is_on()) return absl::OkStatus();
  std::optional<SpaceUse> news;
  {
    absl::MutexLock lock(&mutex_);
    const Place place = PlaceOf(name);
    if (place.rule == nullptr || place.rule->max_tags == 0) return absl::OkStatus();
    Entry& entry = EntryFor(name);
    Account& account = *entry.account;
    if (Holds(place) && Exceeds(account.sizes.tags, 1, place.rule->max_tags)) {
      return TooManyTags(UseOf(account), name, 1);
    }
    SpaceSizes grown = entry.sizes;
    ++grown.tags;
    SetSizes(entry, grown);
    ++entry.grown_tags;
    news = NearNews(account);
  }
  if (news) on_near_(*news);
  return absl::OkStatus();
}

void SpaceLedger::DropTag(std::string_view name) {
  if (!is_on()) return;
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(HashOf(name));
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  SpaceSizes left = entry.sizes;
  left.tags -= std::min<uint64_t>(left.tags, 1);
  SetSizes(entry, left);
  entry.grown_tags -= std::min<uint64_t>(entry.grown_tags, 1);
}

bool SpaceLedger::LimitsTags(std::string_view name) const {
  if (!is_on()) return false;
  absl::MutexLock lock(&mutex_);
  const Place place = PlaceOf(name);
  return place.rule != nullptr && place.rule->max_tags > 0;
}

bool SpaceLedger::LimitsArchived(std::string_view name) const {
  if (!is_on()) return false;
  absl::MutexLock lock(&mutex_);
  const Place place = PlaceOf(name);
  return place.rule != nullptr && place.rule->archived_bytes > 0;
}

void SpaceLedger::Moved(std::string_view name, std::string_view new_name) {
  if (!is_on()) return;
  absl::MutexLock lock(&mutex_);
  const Entry* const entry = Find(name);
  if (entry == nullptr) return;
  const SpaceSizes sizes = entry->sizes;
  Drop(name);
  SetSizes(EntryFor(new_name), sizes);
}

void SpaceLedger::BeginMeasure(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(HashOf(name));
  if (found == entries_.end()) return;
  found->second.grown_bytes = 0;
  found->second.grown_tags = 0;
}

void SpaceLedger::Measured(std::string_view name, const std::optional<SpaceSizes>& sizes) {
  std::optional<SpaceUse> news;
  {
    absl::MutexLock lock(&mutex_);
    if (!sizes) return Drop(name);
    Entry& entry = EntryFor(name);
    SetSizes(entry, {sizes->head_bytes + entry.grown_bytes, sizes->history_bytes,
                     sizes->tags + entry.grown_tags, sizes->archived_bytes});
    news = NearNews(*entry.account);
  }
  if (news) on_near_(*news);
}

std::optional<SpaceUse> SpaceLedger::HistoryOf(std::string_view name) const {
  if (!is_on()) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  const Entry* const entry = Find(name);
  if (entry == nullptr || !Holds(entry->account->place)) return std::nullopt;
  if (entry->account->place.rule->history_bytes == 0) return std::nullopt;
  return UseOf(*entry->account);
}

std::optional<bool> SpaceLedger::IsOverShare(std::string_view name) const {
  if (!is_on()) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  if (!is_counted_ || !uncounted_.empty()) return std::nullopt;
  const Entry* const entry = Find(name);
  return entry != nullptr && with_history_ > 0 &&
         entry->account->sizes.history_bytes >= history_bytes_ / with_history_;
}

std::vector<SpaceUse> SpaceLedger::List(std::string_view after, size_t limit) const {
  std::vector<const Account*> accounts;
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, account] : accounts_) {
    const bool is_next = after.empty() || account->place.directory > after;
    if (account->place.rule != nullptr && is_next) accounts.push_back(account.get());
  }
  const auto before = [](const Account* a, const Account* b) {
    return a->place.directory < b->place.directory;
  };
  limit = std::min(limit, accounts.size());
  std::partial_sort(accounts.begin(), accounts.begin() + static_cast<std::ptrdiff_t>(limit),
                    accounts.end(), before);
  std::vector<SpaceUse> uses;
  for (size_t i = 0; i < limit; ++i) uses.push_back(UseOf(*accounts[i]));
  return uses;
}

std::optional<SpaceUse> SpaceLedger::AccountOf(std::string_view name) const {
  if (!is_on()) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  const Entry* const entry = Find(name);
  if (entry == nullptr || entry->account->place.rule == nullptr) return std::nullopt;
  return UseOf(*entry->account);
}

uint64_t SpaceLedger::HeadOf(std::string_view name) const {
  if (!is_on()) return 0;
  absl::MutexLock lock(&mutex_);
  const Entry* const entry = Find(name);
  return entry == nullptr ? 0 : entry->sizes.head_bytes;
}

}  // namespace h5mirror::server
