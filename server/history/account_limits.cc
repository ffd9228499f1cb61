// Limits of accounts: if the histories of an account, of one [[quota]] table, take more than
// history_bytes, the keeper thins those and no others.
#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/history/history_pruner.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kRetry = absl::Minutes(1);
// The most files of an account that are considered.
constexpr size_t kLargestFiles = 4096;

}  // namespace

absl::StatusOr<bool> HistoryPruner::CheckAccount(const std::string& name) {
  const auto use = quotas_ == nullptr ? std::nullopt : quotas_->ledger.HistoryOf(name);
  if (!use) return true;
  const std::string key = StrCat(use->rule.source, " ", use->directory);
  const auto full = full_accounts_.find(key);
  if (use->sizes.history_bytes <= use->rule.history_bytes) {
    if (full != full_accounts_.end()) full_accounts_.erase(full);
    return true;
  }
  if (full != full_accounts_.end() && full->second.retry > Now()) {
    StopFile(name, full->second.notice);
    return false;
  }
  const std::string why = StrCat("history_bytes = ", HumanBytes(use->rule.history_bytes), " of \"",
                                 use->directory, "\", by ", use->rule.Label());
  H5M_ASSIGN_OR_RETURN(const bool is_within, ThinAccount(*use, why));
  if (is_within) {
    full_accounts_.erase(key);
    return true;
  }
  const std::string notice =
      StrCat("stopped: new versions are not made, since the histories there take ",
             HumanBytes(use->sizes.history_bytes), " of ", why,
             ", and dropping all versions without a tag would not bring them below; "
             "prune or untag versions, or raise the limit");
  full_accounts_[key] = {notice, Now() + kRetry};
  StopFile(name, notice);
  return false;
}

absl::StatusOr<uint64_t> HistoryPruner::EstimateAll(absl::Span<const std::string> names,
                                                    uint64_t enough) {
  uint64_t bytes = 0;
  for (const std::string& name : names) {
    const auto file = store_.OpenFile(name);
    if (!file.ok()) continue;  // Gone, or damaged: it gives nothing.
    const auto gives = EstimateThinning(**file, [this] { return Pause(); });
    if (absl::IsCancelled(gives.status())) return gives.status();
    bytes += gives.value_or(0);
    if (bytes >= enough) break;
  }
  return bytes;
}

absl::StatusOr<bool> HistoryPruner::ThinAccount(const SpaceUse& use, const std::string& why) {
  // Else a pause would find the account over its limit, and thin it too.
  const absl::Cleanup restore = [this, was = std::exchange(in_urgent_, true)] { in_urgent_ = was; };
  const auto is_of_account = [&](const std::string& name) {
    const auto its = quotas_->ledger.HistoryOf(name);
    return its && its->directory == use.directory && its->rule == use.rule;
  };
  uint64_t sum_bytes = 0;  // Newer than what the ledger has.
  const std::vector<std::string> names =
      LargestHistories(use.directory, kLargestFiles, is_of_account, &sum_bytes);
  if (stopping()) return absl::CancelledError("the server stops");
  const uint64_t limit = use.rule.history_bytes;
  if (sum_bytes <= limit) {
    for (const std::string& name : names) quotas_->counter.Changed(name);
    return true;
  }
  const uint64_t needed = sum_bytes - limit;
  H5M_ASSIGN_OR_RETURN(const uint64_t possible, EstimateAll(names, needed + ThinningSlack(limit)));
  if (possible < needed) return false;
  // Where all that may go is hardly enough, no more of it goes than is needed.
  uint64_t wanted = possible < needed + ThinningSlack(limit) ? needed : possible;
  wanted = std::min(wanted, needed + ThinningSlack(limit));
  for (const std::string& name : names) {
    const absl::StatusOr<Thinned> thinned =
        Thin(name, {wanted, 0, ThinRequest::IfLess::kDropAll, why}, "history_bytes");
    Report(name, thinned.status());
    // Before the next look at the account.
    quotas_->counter.Measure(name);
    // Another prune of that file is running. The space that it frees must not be taken from other
    // files.
    if (!thinned.ok() || thinned->freed_bytes >= wanted) break;
    wanted -= thinned->freed_bytes;
  }
  return true;
}

}  // namespace h5mirror::server
