// What the keeper does where the histories of an account, of one [[quota]] table, take more than
// history_bytes: it thins those, and nobody else's.
#include <utility>

#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/history/history_pruner.h"

namespace h5mirror::server {
absl::StatusOr<bool> HistoryPruner::CheckAccount(const std::string& name) {
  const auto use = quotas_ == nullptr ? std::nullopt : quotas_->ledger.HistoryOf(name);
  if (!use || use->sizes.history_bytes <= use->rule.history_bytes) return true;
  if (is_stopped(name)) return false;
  const std::string why = StrCat("history_bytes = ", HumanBytes(use->rule.history_bytes), " of \"",
                                 use->directory, "\", by ", use->rule.Label());
  H5M_ASSIGN_OR_RETURN(const bool is_within, ThinAccount(*use, why));
  if (is_within) return true;
  StopFile(name, StrCat("stopped: new versions are not made, since the histories there take ",
                        HumanBytes(use->sizes.history_bytes), " of ", why,
                        ", and dropping all versions without a tag would not bring them below; "
                        "prune or untag versions, or raise the limit"));
  return false;
}

absl::StatusOr<bool> HistoryPruner::CanFree(absl::Span<const std::string> names, uint64_t bytes) {
  uint64_t can_bytes = 0;
  for (const std::string& name : names) {
    const auto file = store_.OpenFile(name);
    if (!file.ok()) continue;  // Gone, or damaged: it gives nothing.
    const auto gives = EstimateThinning(**file, [this] { return Pause(); });
    if (absl::IsCancelled(gives.status())) return gives.status();
    can_bytes += gives.value_or(0);
    if (can_bytes >= bytes) return true;
  }
  return false;
}

absl::StatusOr<bool> HistoryPruner::ThinAccount(const SpaceUse& use, std::string_view why) {
  const auto is_of_account = [&](const std::string& name) {
    const auto its = quotas_->ledger.HistoryOf(name);
    return its && its->directory == use.directory && its->rule.source == use.rule.source;
  };
  uint64_t sum_bytes = 0;  // Newer than what the ledger has.
  const std::vector<std::string> names = LargestHistories(use.directory, is_of_account, &sum_bytes);
  const uint64_t limit = use.rule.history_bytes;
  if (sum_bytes <= limit) return true;
  H5M_ASSIGN_OR_RETURN(const bool can_free, CanFree(names, sum_bytes - limit));
  if (!can_free) return false;
  for (uint64_t wanted = sum_bytes - limit + ThinningSlack(limit);
       const std::string& name : names) {
    const absl::StatusOr<Thinned> thinned =
        Thin(name, {wanted, 0, ThinRequest::IfLess::kDropAll, std::string(why)}, "history_bytes");
    Report(name, thinned.status());
    // Before the next look at the account.
    quotas_->counter.Measure(name);
    if (!thinned.ok()) continue;
    if (thinned->freed_bytes >= wanted) break;
    wanted -= thinned->freed_bytes;
  }
  return true;
}

}  // namespace h5mirror::server
