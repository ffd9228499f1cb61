#include "server/history/history_pruner.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/history/prune_plan.h"
#include "server/history/thinning.h"
#include "server/state/store_watch.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kRoundPeriod = absl::Seconds(1);
constexpr absl::Duration kStopCheckPeriod = absl::Milliseconds(100);
constexpr absl::Duration kHourlyPeriod = absl::Hours(1);
constexpr absl::Duration kRetryInDoubt = absl::Minutes(15);
// A server that is started anew every day applies its rules all the same.
constexpr absl::Duration kFirstPassMax = absl::Minutes(15);
constexpr size_t kFilesAtOnce = 256;
// A commit's changes enter the history when the head takes them in, soon after the commit.
constexpr absl::Duration kGrowthWatched = absl::Minutes(1);
constexpr absl::Duration kNoticeKept = absl::Hours(24);
constexpr size_t kNoticesMax = 10'000;

}  // namespace

HistoryPruner::HistoryPruner(const Config& config, store::Store& store, Clock& clock,
                             Metrics& metrics, SpaceQuotas* quotas, EventSink* events)
    : rules_(config.retention),
      prune_every_(config.prune_every),
      min_free_(config.min_free),
      store_(store),
      clock_(clock),
      metrics_(metrics),
      quotas_(quotas),
      events_(events),
      next_hourly_(clock.Monotonic()),
      next_pass_(clock.Monotonic() + std::min(kFirstPassMax, prune_every_)),
      next_thinning_(clock.Monotonic()),
      last_urgent_(clock.Monotonic()) {}

void HistoryPruner::Start() {
  StopWhereLow();
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "h5m-history");
    while (!stopping()) {
      Round();
      // Slept through, as a wait for `mutex_` is until a time of day, which may be set back by
      // hours.
      for (absl::Duration slept; slept < kRoundPeriod && !stopping(); slept += kStopCheckPeriod) {
        absl::SleepFor(kStopCheckPeriod);
      }
    }
  });
}

void HistoryPruner::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool HistoryPruner::stopping() const {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

absl::Status HistoryPruner::Pause() {
  if (stopping()) return absl::CancelledError("the server stops");
  if (Now() - last_urgent_ < kRoundPeriod) return absl::OkStatus();
  if (!in_urgent_) {
    RunUrgent();
  } else {
    StopWhereLow();
    last_urgent_ = Now();
  }
  return absl::OkStatus();
}

void HistoryPruner::Report(const std::string& name, const absl::Status& status) {
  // Gone or stopping; somebody else prunes it, and it comes to its turn again.
  if (status.ok() || absl::IsNotFound(status) || absl::IsCancelled(status) ||
      absl::IsFailedPrecondition(status)) {
    return;
  }
  spdlog::warn("history: file={} cannot be pruned now: {}", Quoted(name), status.ToString());
}

void HistoryPruner::RunUrgent() {
  in_urgent_ = true;
  CheckDisk();
  CheckGrown();
  in_urgent_ = false;
  last_urgent_ = Now();
}

void HistoryPruner::Round() {
  RunUrgent();
  if (!checks_noted_) NoteChecks();
  TellDamage(LogNotices(store_));
  if (auto* health = store::StoreHealth::Of(store_); health != nullptr) health->Tend();
  if (Now() >= next_hourly_) {
    next_hourly_ = Now() + kHourlyPeriod;
    PurgeRemoved();
    FinishPrunes();
  }
  if (prune_every_ > absl::ZeroDuration() && !rules_.empty() && Now() >= next_pass_) {
    if (TimeIsInDoubt(store_, "retention")) {
      next_pass_ = Now() + std::min(kRetryInDoubt, prune_every_);
      return;
    }
    next_pass_ = Now() + prune_every_;
    RunPass();
  }
}

void HistoryPruner::NoteChecks() {
  checks_noted_ = true;
  const auto names = store_.CheckedFiles();
  if (!names.ok()) {
    spdlog::warn("checks: files cannot be listed: {}", names.status().ToString());
    return;
  }
  for (const std::string& name : *names) {
    if (!Pause().ok()) return;
    const auto file = store_.OpenFile(name);
    if (!file.ok()) continue;  // A caller that opens the file is told why.
    const auto info = (*file)->Info();
    if (info.ok() && info->last_check) metrics_.checks().Note(name, *info->last_check);
  }
}

void HistoryPruner::PurgeRemoved() {
  if (TimeIsInDoubt(store_, "purge")) return;
  const auto purged = store_.PurgeRemoved(clock_.Now());
  if (!purged.ok()) spdlog::error("purge of removed files: {}", purged.status().ToString());
  if (purged.value_or(0) == 0) return;
  spdlog::info("purge: {} removed files are gone for good", *purged);
  if (quotas_ != nullptr) quotas_->counter.RemovedExpired();
}

void HistoryPruner::FinishPrunes() {
  const auto names = store_.UnfinishedPrunes();
  if (!names.ok()) {
    spdlog::warn("history: unfinished prunes cannot be listed: {}", names.status().ToString());
    return;
  }
  for (const std::string& name : *names) {
    const auto finish = [&]() -> absl::Status {
      H5M_RETURN_IF_ERROR(Pause());
      H5M_ASSIGN_OR_RETURN(const auto file, store_.OpenFile(name));
      H5M_RETURN_IF_ERROR(DropVersions(*file, {}, [this] { return Pause(); }).status());
      if (quotas_ != nullptr) quotas_->counter.Changed(name);
      spdlog::info("history: file={}: a prune that was cut short is done", Quoted(name));
      return absl::OkStatus();
    };
    Report(name, finish());
  }
}

void HistoryPruner::RunPass() {
  std::string after;
  for (;;) {
    const auto files = store_.List("", after, kFilesAtOnce);
    // A server of a cluster whose cells are others' now.
    if (absl::IsUnavailable(files.status())) return;
    if (!files.ok()) {
      spdlog::error("history: files cannot be listed: {}", files.status().ToString());
      return;
    }
    if (files->empty()) return;
    after = files->back().name;
    for (const store::FileSummary& file : *files) {
      if (!Pause().ok()) return;
      const RetentionRule* rule = FindRule(rules_, file.name);
      if (rule != nullptr && !rule->keep_all) Report(file.name, Tend(file.name, *rule));
    }
  }
}

absl::Status HistoryPruner::Tend(const std::string& name, const RetentionRule& rule) {
  if (!rule.policy.empty()) {
    H5M_ASSIGN_OR_RETURN(const auto file, store_.OpenFile(name));
    H5M_RETURN_IF_ERROR(PruneByRule(*file, rule));
  }
  return rule.history_max_bytes > 0 ? CheckLimits(name) : absl::OkStatus();
}

absl::Status HistoryPruner::PruneByRule(store::File& file, const RetentionRule& rule) {
  H5M_ASSIGN_OR_RETURN(std::vector<store::VersionNumber> doomed,
                       PlanPrune(file, rule.policy, [this] { return Pause(); }));
  if (doomed.empty()) return absl::OkStatus();
  std::sort(doomed.begin(), doomed.end());
  DropOrder order{std::move(doomed), StrCat("retention ", rule.Label())};
  H5M_ASSIGN_OR_RETURN(const store::PruneProgress done,
                       DropVersions(file, order, [this] { return Pause(); }));
  metrics_.VersionsDropped("retention", done.versions_dropped);
  if (quotas_ != nullptr) quotas_->counter.Changed(file.name());
  return absl::OkStatus();
}

void HistoryPruner::Grew(const std::string& name) {
  if (quotas_ != nullptr) quotas_->counter.Changed(name);
  const RetentionRule* rule = FindRule(rules_, name);
  const bool has_limit = rule != nullptr && rule->history_max_bytes > 0;
  const bool has_account = quotas_ != nullptr && quotas_->ledger.is_on();
  if (!has_limit && !has_account) return;
  const absl::Duration until = Now() + kGrowthWatched;
  absl::MutexLock lock(&mutex_);
  grown_[name] = until;
}

std::string HistoryPruner::NoticeOf(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  if (!all_stopped_.empty()) return all_stopped_;
  if (const auto found = stopped_.find(name); found != stopped_.end()) return found->second.notice;
  const auto found = thinned_.find(name);
  const bool shown = found != thinned_.end() && clock_.Now() - found->second.time < kNoticeKept;
  return shown ? found->second.notice : "";
}

void HistoryPruner::TellDamage(const std::vector<store::StoreNotice>& notices) {
  for (const store::StoreNotice& notice : notices) {
    if (notice.kind != store::StoreNotice::Kind::kPagesLost) continue;
    Notify(events_, {.kind = EventKind::kVerifyFailed, .file = notice.file, .text = notice.text});
  }
}

void HistoryPruner::NoteThinned(const std::string& name, int64_t versions, std::string_view why) {
  if (versions == 0) return;
  const absl::Time now = clock_.Now();
  std::string notice =
      StrCat(versions, versions == 1 ? " version was" : " versions were", " dropped early at ",
             HumanTime(now), ", the oldest without a tag: ", why);
  spdlog::warn("history: file={}: {}", Quoted(name), notice);
  absl::MutexLock lock(&mutex_);
  if (thinned_.size() >= kNoticesMax) {
    absl::erase_if(thinned_,
                   [now](const auto& each) { return now - each.second.time >= kNoticeKept; });
  }
  if (thinned_.size() < kNoticesMax) thinned_[name] = {std::move(notice), now};
}

}  // namespace h5mirror::server
