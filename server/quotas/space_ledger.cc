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

uint64_t HashOf(std::string_view name) { return absl::HashOf(ToAbsl(name)); }

int PercentOf(uint64_t used, uint64_t limit) {
  if (limit == 0) return 0;
  return static_cast<int>(
      std::min(static_cast<double>(used) / static_cast<double>(limit) * 100, 1e6));
}

std::string AccountName(std::string_view directory) {
  return directory.empty() ? "the whole server" : Quoted(directory);
}

// "has 9.8 GiB of its head_bytes = 10 GiB, by [[quota]] (h5mirrord.toml:12)"
absl::Status Exceeded(const SpaceUse& use, std::string_view key, std::string_view used,
                      std::string_view limit, std::string_view wanted) {
  return absl::ResourceExhaustedError(
      StrCat("quota: ", AccountName(use.directory), " takes ", used, " of ", key, " = ", limit,
             ", by ", use.rule.Label(), ", and ", wanted,
             ": the server's files stay as they are; remove files there, or let the server's "
             "operator raise the limit"));
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

int SpaceUse::FullestPercent() const {
  return std::max({PercentOf(sizes.head_bytes, rule.head_bytes),
                   PercentOf(sizes.history_bytes, rule.history_bytes),
                   PercentOf(files, rule.max_files)});
}

void SpaceLedger::SetRules(std::vector<QuotaRule> rules) {
  absl::MutexLock lock(&mutex_);
  // The entries first: they name accounts, and accounts name rules.
  entries_.clear();
  accounts_.clear();
  rules_ = std::move(rules);
  ++rules_number_;
  is_counted_ = false;
  history_bytes_ = 0;
  is_on_ = !rules_.empty();
}

uint64_t SpaceLedger::rules_number() const {
  absl::MutexLock lock(&mutex_);
  return rules_number_;
}

void SpaceLedger::FinishCount(uint64_t rules_number) {
  absl::MutexLock lock(&mutex_);
  if (rules_number == rules_number_) is_counted_ = true;
}

bool SpaceLedger::is_counted() const {
  absl::MutexLock lock(&mutex_);
  return is_counted_;
}

SpaceUse SpaceLedger::UseOf(const Account& account) {
  return {account.directory, account.sizes, account.files,
          account.rule == nullptr ? QuotaRule{} : *account.rule};
}

SpaceLedger::Account& SpaceLedger::AccountFor(std::string_view name) {
  std::string key;
  Account fresh;
  for (size_t i = 0; i < rules_.size(); ++i) {
    std::optional<std::string> directory = rules_[i].AccountOf(name);
    if (!directory) continue;
    key = StrCat(i, ":", *directory);
    fresh.directory = *std::move(directory);
    fresh.rule = &rules_[i];
    break;
  }
  std::unique_ptr<Account>& account = accounts_[key];
  if (account == nullptr) account = std::make_unique<Account>(std::move(fresh));
  return *account;
}

const SpaceLedger::Account* SpaceLedger::FindAccount(std::string_view name) const {
  const auto entry = entries_.find(HashOf(name));
  return entry == entries_.end() ? nullptr : entry->second.account;
}

SpaceLedger::Entry& SpaceLedger::EntryFor(std::string_view name) {
  const auto [found, is_new] = entries_.try_emplace(HashOf(name));
  if (is_new) {
    found->second.account = &AccountFor(name);
    ++found->second.account->files;
  }
  return found->second;
}

void SpaceLedger::SetSizes(Entry& entry, const SpaceSizes& sizes) {
  SpaceSizes& sum = entry.account->sizes;
  sum.head_bytes += sizes.head_bytes - entry.sizes.head_bytes;
  sum.history_bytes += sizes.history_bytes - entry.sizes.history_bytes;
  history_bytes_ += sizes.history_bytes - entry.sizes.history_bytes;
  entry.sizes = sizes;
}

std::optional<SpaceUse> SpaceLedger::NearNews(Account& account) {
  if (account.rule == nullptr || !is_counted_) return std::nullopt;
  SpaceUse use = UseOf(account);
  const int percent = use.FullestPercent();
  if (percent < kFarPercent) account.is_near = false;
  if (percent < kNearPercent || std::exchange(account.is_near, true)) return std::nullopt;
  return use;
}

absl::Status SpaceLedger::AddFile(std::string_view name) {
  if (!is_on()) return absl::OkStatus();
  std::optional<SpaceUse> news;
  {
    absl::MutexLock lock(&mutex_);
    if (entries_.contains(HashOf(name))) return absl::OkStatus();
    const Account& account = AccountFor(name);
    if (is_counted_ && account.rule != nullptr &&
        Exceeds(account.files, 1, account.rule->max_files)) {
      return TooManyFiles(UseOf(account), name);
    }
    news = NearNews(*EntryFor(name).account);
  }
  if (news && on_near_) on_near_(*news);
  return absl::OkStatus();
}

absl::Status SpaceLedger::Grow(std::string_view name, uint64_t more_bytes, uint64_t end_bytes) {
  if (!is_on() || more_bytes == 0) return absl::OkStatus();
  std::optional<SpaceUse> news;
  {
    absl::MutexLock lock(&mutex_);
    Entry& entry = EntryFor(name);
    Account& account = *entry.account;
    if (is_counted_ && account.rule != nullptr &&
        Exceeds(account.sizes.head_bytes, more_bytes, account.rule->head_bytes)) {
      entry.refused_bytes = entry.sizes.head_bytes + more_bytes;
      entry.refused_end_bytes = end_bytes;
      return TooManyBytes(UseOf(account), "head_bytes", account.sizes.head_bytes,
                          account.rule->head_bytes, name, more_bytes);
    }
    SetSizes(entry, {entry.sizes.head_bytes + more_bytes, entry.sizes.history_bytes});
    entry.grown_bytes += more_bytes;
    news = NearNews(account);
  }
  if (news && on_near_) on_near_(*news);
  return absl::OkStatus();
}

absl::Status SpaceLedger::MayBegin(std::string_view name, uint64_t local_bytes) {
  if (!is_on()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(HashOf(name));
  if (found == entries_.end() || found->second.refused_bytes == 0) return absl::OkStatus();
  Entry& entry = found->second;
  const Account& account = *entry.account;
  const bool goes_there =
      local_bytes >= entry.refused_end_bytes && entry.refused_bytes > entry.sizes.head_bytes;
  const uint64_t more_bytes = goes_there ? entry.refused_bytes - entry.sizes.head_bytes : 0;
  if (is_counted_ && account.rule != nullptr &&
      Exceeds(account.sizes.head_bytes, more_bytes, account.rule->head_bytes)) {
    return TooManyBytes(UseOf(account), "head_bytes", account.sizes.head_bytes,
                        account.rule->head_bytes, name, more_bytes);
  }
  entry.refused_bytes = 0;
  return absl::OkStatus();
}

absl::Status SpaceLedger::MayHold(std::string_view name, const SpaceSizes& sizes,
                                  std::string_view from) {
  if (!is_on()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  if (!is_counted_) return absl::OkStatus();
  const Account& account = AccountFor(name);
  if (account.rule == nullptr) return absl::OkStatus();
  // What the account has of this file already: under its name, or under that of before.
  SpaceSizes had;
  bool is_there = false;
  for (const std::string_view each : {name, from}) {
    const auto found = each.empty() ? entries_.end() : entries_.find(HashOf(each));
    if (found == entries_.end() || found->second.account != &account) continue;
    had = found->second.sizes;
    is_there = true;
  }
  const SpaceUse use = UseOf(account);
  if (!is_there && Exceeds(use.files, 1, use.rule.max_files)) return TooManyFiles(use, name);
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
  return absl::OkStatus();
}

void SpaceLedger::BeginGeneration(std::string_view name) {
  if (!is_on()) return;
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(HashOf(name));
  if (found == entries_.end()) return;
  SetSizes(found->second, {0, found->second.sizes.history_bytes});
}

void SpaceLedger::BeginMeasure(std::string_view name) {
  absl::MutexLock lock(&mutex_);
  const auto found = entries_.find(HashOf(name));
  if (found != entries_.end()) found->second.grown_bytes = 0;
}

void SpaceLedger::Measured(std::string_view name, const std::optional<SpaceSizes>& sizes) {
  std::optional<SpaceUse> news;
  {
    absl::MutexLock lock(&mutex_);
    if (!sizes) {
      const auto found = entries_.find(HashOf(name));
      if (found == entries_.end()) return;
      SetSizes(found->second, {});
      --found->second.account->files;
      entries_.erase(found);
      return;
    }
    Entry& entry = EntryFor(name);
    SetSizes(entry, {sizes->head_bytes + entry.grown_bytes, sizes->history_bytes});
    news = NearNews(*entry.account);
  }
  if (news && on_near_) on_near_(*news);
}

std::optional<SpaceUse> SpaceLedger::HistoryOf(std::string_view name) const {
  if (!is_on()) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  const Account* account = is_counted_ ? FindAccount(name) : nullptr;
  if (account == nullptr || account->rule == nullptr || account->rule->history_bytes == 0) {
    return std::nullopt;
  }
  return UseOf(*account);
}

std::optional<bool> SpaceLedger::IsOverShare(std::string_view name) const {
  if (!is_on()) return std::nullopt;
  absl::MutexLock lock(&mutex_);
  if (!is_counted_) return std::nullopt;
  const Account* account = FindAccount(name);
  if (account == nullptr) return false;
  const auto count =
      static_cast<uint64_t>(std::count_if(accounts_.begin(), accounts_.end(), [](const auto& each) {
        return each.second->sizes.history_bytes > 0;
      }));
  return count > 0 && account->sizes.history_bytes >= history_bytes_ / count;
}

std::vector<SpaceUse> SpaceLedger::List(std::string_view after, size_t limit) const {
  std::vector<const Account*> accounts;
  absl::MutexLock lock(&mutex_);
  for (const auto& [key, account] : accounts_) {
    const bool is_shown = account->rule != nullptr && account->files > 0;
    if (is_shown && (after.empty() || account->directory > after))
      accounts.push_back(account.get());
  }
  const auto before = [](const Account* a, const Account* b) {
    return a->directory < b->directory;
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
  const Account* account = FindAccount(name);
  if (account == nullptr || account->rule == nullptr) return std::nullopt;
  return UseOf(*account);
}

}  // namespace h5mirror::server
