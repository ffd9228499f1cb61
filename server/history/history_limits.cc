// The keeper's reaction to a limit: history_max_bytes of a file, min_free of the disk.
#include <algorithm>
#include <functional>
#include <utility>

#include "archive/root_archive.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/history/history_pruner.h"
#include "server/history/thinning.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr size_t kFilesAtOnce = 256;
constexpr absl::Duration kRetry = absl::Minutes(1);
// Files that are thinned for space before all are looked at again.
constexpr size_t kLargestFiles = 64;

}  // namespace

uint64_t HistoryPruner::Disk::goal_bytes() const {
  return min_free_bytes + ThinningSlack(min_free_bytes);
}

void HistoryPruner::CheckGrown() {
  std::vector<std::string> names;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = Now();
    for (const auto& [name, until] : grown_) names.push_back(name);
    absl::erase_if(grown_, [now](const auto& each) { return each.second <= now; });
    for (const auto& [name, stop] : stopped_) {
      if (stop.retry <= now && !grown_.contains(name)) names.push_back(name);
    }
  }
  for (const std::string& name : names) {
    if (stopping()) return;
    // The pages that a cut replaces come to its history when the head takes it in.
    if (quotas_ != nullptr) quotas_->counter.Changed(name);
    const absl::Status status = CheckLimits(name);
    if (absl::IsNotFound(status)) ResumeFile(name);
    if (!status.ok()) TryLater(name);
    Report(name, status);
  }
}

absl::Status HistoryPruner::CheckLimits(const std::string& name) {
  H5M_ASSIGN_OR_RETURN(const bool may_grow, CheckAccount(name));
  if (!may_grow) return absl::OkStatus();
  const RetentionRule* rule = FindRule(rules_, name);
  if (rule != nullptr && rule->history_max_bytes > 0) return CheckLimit(name, *rule);
  ResumeFile(name);  // It may have been moved to where no limit is.
  return absl::OkStatus();
}

bool HistoryPruner::is_stopped(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = stopped_.find(name);
  return found != stopped_.end() && found->second.retry > clock_.Monotonic();
}

absl::Status HistoryPruner::CheckLimit(const std::string& name, const RetentionRule& rule) {
  H5M_ASSIGN_OR_RETURN(const store::HistorySizes sizes, store_.Measure(name, store::WithHead::kNo));
  if (sizes.history() <= rule.history_max_bytes) {
    ResumeFile(name);
    return absl::OkStatus();
  }
  return is_stopped(name) ? absl::OkStatus() : ThinToLimit(name, rule);
}

absl::Status HistoryPruner::ThinToLimit(const std::string& name, const RetentionRule& rule) {
  const uint64_t limit = rule.history_max_bytes;
  const std::string limit_text =
      StrCat("history_max_bytes = ", HumanBytes(limit), " of ", rule.Label());
  H5M_ASSIGN_OR_RETURN(const auto file, store_.OpenFile(name));
  // Versions that the rule does not keep go first.
  if (!rule.policy.empty()) H5M_RETURN_IF_ERROR(PruneByRule(*file, rule));
  H5M_ASSIGN_OR_RETURN(store::HistorySizes sizes, store_.Measure(name, store::WithHead::kNo));
  if (sizes.history() > limit) {
    const uint64_t over = sizes.history() - limit;
    H5M_ASSIGN_OR_RETURN(
        const Thinned thinned,
        Thin(name, {over + ThinningSlack(limit), over, ThinRequest::IfLess::kDropNone, limit_text},
             "history_max_bytes"));
    H5M_ASSIGN_OR_RETURN(sizes, store_.Measure(name, store::WithHead::kNo));
    if (thinned.versions > 0 && sizes.history() > limit) {
      Grew(name);  // A writer has made more meanwhile: it is looked at again.
      return absl::OkStatus();
    }
  }
  if (sizes.history() <= limit) {
    ResumeFile(name);
    return absl::OkStatus();
  }
  StopFile(name, StrCat("stopped: new versions are not made, since the history takes ",
                        HumanBytes(sizes.history()), " of ", limit_text,
                        ", and dropping all versions without a tag would not bring it below; "
                        "prune or untag versions, or raise the limit"));
  return absl::OkStatus();
}

void HistoryPruner::StopFile(const std::string& name, std::string notice) {
  store_.StopHistory(name);
  absl::MutexLock lock(&mutex_);
  const bool fresh = !stopped_.contains(name);
  if (fresh) {
    spdlog::warn("history: file={} is {}", Quoted(name), notice);
    Notify(events_, {.kind = EventKind::kHistoryStopped, .file = name, .text = notice});
  }
  stopped_[name] = {std::move(notice), Now() + kRetry};
  metrics_.SetStoppedFiles(stopped_.size());
}

void HistoryPruner::TryLater(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  const auto found = stopped_.find(name);
  if (found != stopped_.end()) found->second.retry = Now() + kRetry;
}

void HistoryPruner::ResumeFile(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (stopped_.erase(name) == 0) return;
  store_.ResumeHistory(name);
  spdlog::warn("history: file={} goes on: it is within its limit again", Quoted(name));
  metrics_.SetStoppedFiles(stopped_.size());
}

std::optional<HistoryPruner::Disk> HistoryPruner::LookAtDisk() {
  if (!min_free_.is_set()) return std::nullopt;
  const absl::StatusOr<uint64_t> free = store_.FreeDiskBytes();
  if (!free.ok()) {
    // The status names the root.
    spdlog::warn("history: cannot read how much of the disk is free, and min_free waits: {}",
                 free.status().ToString());
    return std::nullopt;
  }
  return Disk{*free, min_free_.BytesOf(store_.disk_bytes())};
}

void HistoryPruner::TellIfLow(const Disk& disk) {
  if (disk.free_bytes >= disk.min_free_bytes || std::exchange(is_low_, true)) return;
  Notify(events_, {.kind = EventKind::kDiskLow,
                   .text = StrCat(HumanBytes(disk.free_bytes),
                                  " are free on the server's disk, min_free is ",
                                  HumanBytes(disk.min_free_bytes), ": old versions are dropped"),
                   .numbers = {{"free_bytes", static_cast<int64_t>(disk.free_bytes)},
                               {"min_free_bytes", static_cast<int64_t>(disk.min_free_bytes)},
                               {"disk_bytes", static_cast<int64_t>(store_.disk_bytes())}}});
}

void HistoryPruner::StopWhereLow() {
  const std::optional<Disk> disk = LookAtDisk();
  if (disk) TellIfLow(*disk);
  // Too fast for thinning: what is made meanwhile must not take the rest.
  if (disk && disk->free_bytes < disk->min_free_bytes / 2) {
    StopAll(*disk, "while old versions are dropped");
  }
}

void HistoryPruner::CheckDisk() {
  StopWhereLow();
  const std::optional<Disk> disk = LookAtDisk();
  if (!disk) return;
  metrics_.SetMinFree(disk->min_free_bytes);
  if (disk->free_bytes >= disk->goal_bytes()) return ResumeAll(*disk);
  // Once stopped, it thins until the goal is reached.
  if (disk->free_bytes >= disk->min_free_bytes && !all_stopped()) return;
  if (Now() < next_thinning_) return;
  // A dead archive would hold this up for each file. Objects are deleted later, once an hour.
  const archive::RootArchive::NoCalls on_disk_only;
  PurgeRemoved();
  // Whose versions may go is not known yet.
  const bool is_known =
      quotas_ == nullptr || !quotas_->ledger.is_on() || quotas_->ledger.is_counted();
  if (!is_known) return StopAll(*disk, "until the files of all accounts are counted");
  const uint64_t freed = ThinForSpace();
  const std::optional<Disk> left = LookAtDisk();
  if (!left || freed > 0 || stopping()) return;
  if (left->free_bytes >= left->min_free_bytes) return ResumeAll(*left);
  next_thinning_ = Now() + kRetry;
  StopAll(*left, "and no version without a tag is left that could be dropped");
}

bool HistoryPruner::all_stopped() const {
  absl::MutexLock lock(&mutex_);
  return !all_stopped_.empty();
}

void HistoryPruner::ResumeAll(const Disk& disk) {
  is_low_ = false;
  absl::MutexLock lock(&mutex_);
  if (all_stopped_.empty()) return;
  all_stopped_.clear();
  store_.ResumeHistory("");
  metrics_.SetAllStopped(false);
  spdlog::warn("history: all files go on: {} are free, min_free is {}", HumanBytes(disk.free_bytes),
               HumanBytes(disk.min_free_bytes));
}

void HistoryPruner::StopAll(const Disk& disk, std::string_view why) {
  absl::MutexLock lock(&mutex_);
  const bool fresh = all_stopped_.empty();
  all_stopped_ = StrCat("stopped: new versions are not made, since ", HumanBytes(disk.free_bytes),
                        " are free on the server's disk, min_free is ",
                        HumanBytes(disk.min_free_bytes), ", ", why, "; make room there");
  if (!fresh) return;
  store_.StopHistory("");
  metrics_.SetAllStopped(true);
  spdlog::warn("history: of all files is {}", all_stopped_);
  Notify(events_, {.kind = EventKind::kHistoryStopped,
                   .text = StrCat("of all files: ", all_stopped_),
                   .numbers = {{"free_bytes", static_cast<int64_t>(disk.free_bytes)},
                               {"min_free_bytes", static_cast<int64_t>(disk.min_free_bytes)}}});
}

std::vector<std::string> HistoryPruner::LargestHistories(
    const std::string& directory, size_t count,
    absl::FunctionRef<bool(const std::string& name)> is_meant, uint64_t* sum_bytes) {
  std::vector<std::pair<uint64_t, std::string>> largest;  // a heap, the smallest in front
  std::string after;
  for (;;) {
    const auto files = store_.List(directory, after, kFilesAtOnce);
    if (!files.ok() || files->empty()) break;
    after = files->back().name;
    for (const store::FileSummary& file : *files) {
      if (stopping()) return {};
      if (!is_meant(file.name)) continue;
      const auto sizes = store_.Measure(file.name, store::WithHead::kNo);
      if (!sizes.ok()) continue;
      *sum_bytes += sizes->history();
      const RetentionRule* rule = FindRule(rules_, file.name);
      const bool is_kept = rule != nullptr && rule->keep_all;
      if (is_kept || sizes->pages + sizes->old == 0) continue;
      largest.emplace_back(sizes->history(), file.name);
      std::push_heap(largest.begin(), largest.end(), std::greater<>());
      if (largest.size() <= count) continue;
      std::pop_heap(largest.begin(), largest.end(), std::greater<>());
      largest.pop_back();
    }
  }
  std::sort(largest.begin(), largest.end(), std::greater<>());
  std::vector<std::string> names;
  for (auto& [bytes, name] : largest) names.push_back(std::move(name));
  return names;
}

absl::StatusOr<Thinned> HistoryPruner::Thin(const std::string& name, const ThinRequest& request,
                                            std::string_view reason) {
  H5M_ASSIGN_OR_RETURN(const auto file, store_.OpenFile(name));
  H5M_ASSIGN_OR_RETURN(const Thinned thinned,
                       ThinHistory(*file, request, [this] { return Pause(); }));
  metrics_.VersionsDropped(reason, thinned.versions);
  NoteThinned(name, thinned.versions, request.rule);
  if (quotas_ != nullptr) quotas_->counter.Changed(name);
  return thinned;
}

uint64_t HistoryPruner::ThinForSpace() {
  uint64_t freed_bytes = 0;
  uint64_t sum_bytes = 0;
  // A neighbour with less than its share loses nothing for those with more.
  const auto is_over_share = [this](const std::string& name) {
    return quotas_ == nullptr || quotas_->ledger.IsOverShare(name).value_or(true);
  };
  for (const std::string& name : LargestHistories("", kLargestFiles, is_over_share, &sum_bytes)) {
    const std::optional<Disk> disk = LookAtDisk();
    if (!disk || disk->free_bytes >= disk->goal_bytes() || stopping()) break;
    if (!is_over_share(name)) continue;  // Not any more.
    const std::string why = StrCat("min_free = ", HumanBytes(disk->min_free_bytes));
    const uint64_t wanted = disk->goal_bytes() - disk->free_bytes;
    const absl::StatusOr<Thinned> thinned =
        Thin(name, {wanted, 0, ThinRequest::IfLess::kDropAll, why}, "min_free");
    if (thinned.ok()) freed_bytes += thinned->freed_bytes;
    if (quotas_ != nullptr && quotas_->ledger.is_on()) quotas_->counter.Measure(name);
    Report(name, thinned.status());
  }
  return freed_bytes;
}

}  // namespace h5mirror::server
