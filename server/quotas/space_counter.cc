#include "server/quotas/space_counter.h"

#include <pthread.h>

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "onion_store/store_health.h"
#include "rpc/elsewhere.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kPeriod = absl::Seconds(1);
constexpr absl::Duration kStopCheckPeriod = absl::Milliseconds(100);
// A round that took long, as heads with many holes do, is followed by a rest so many times as long.
constexpr int kRestFactor = 10;
constexpr absl::Duration kPeriodMax = absl::Seconds(30);
// The store reads a whole directory for each of these.
constexpr size_t kFilesAtOnce = 4096;
constexpr absl::Duration kPurgeRetry = absl::Minutes(1);

// "home/anna" has removed 5 files of max_files = 4, by [[quota]] (h5mirrord.toml:12)
std::string WhyItGoes(const SpaceUse& use) {
  const bool is_many = use.rule.max_files > 0 && use.removed_files > use.rule.max_files;
  const std::string amount =
      is_many ? StrCat(use.removed_files, " files of max_files = ", use.rule.max_files)
              : StrCat(HumanBytes(use.removed_bytes),
                       " of removed_bytes = ", HumanBytes(use.rule.removed_bytes));
  return StrCat(Quoted(use.directory), " has removed ", amount, ", by ", use.rule.Label());
}

}  // namespace

RemovedSpace SpaceOf(const store::RemovedFile& removed) {
  return {removed.id, removed.name, removed.removed, removed.head_bytes + removed.history_bytes};
}

void SpaceCounter::Start() {
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "h5m-quota");
    SystemClock clock;
    while (!stopping()) {
      const absl::Duration begin = clock.Monotonic();
      Round();
      const absl::Duration rest =
          std::clamp(kRestFactor * (clock.Monotonic() - begin), kPeriod, kPeriodMax);
      for (absl::Duration slept; slept < rest && !stopping(); slept += kStopCheckPeriod) {
        absl::SleepFor(kStopCheckPeriod);
      }
    }
  });
}

void SpaceCounter::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool SpaceCounter::stopping() const {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

void SpaceCounter::Changed(std::string_view name) {
  if (!ledger_.is_on()) return;
  absl::MutexLock lock(&mutex_);
  changed_.emplace(name);
}

void SpaceCounter::Round() {
  if (!ledger_.is_on()) return;
  const uint64_t rules_number = ledger_.rules_number();
  if (rules_number != counted_rules_) CountAll(rules_number);
  CountChanged();
  if (list_removed_.exchange(false) || SystemClock().Monotonic() >= list_again_) {
    ListRemoved().IgnoreError();  // It says when the next one is.
  }
  PurgeRemoved();
}

absl::Status SpaceCounter::ListRemoved() {
  const std::vector<std::string> before = ledger_.RemovedIds();
  ledger_.BeginListing();
  const absl::Cleanup end = [this] { ledger_.EndListing(); };
  const auto files = store_.ListRemoved();
  list_again_ = absl::InfiniteDuration();
  if (!files.ok()) {
    const absl::Duration now = SystemClock().Monotonic();
    // A server of a cluster that has not joined it yet, or has lost its place: the next round.
    const bool is_away = absl::IsUnavailable(files.status());
    list_again_ = is_away ? now : now + kPurgeRetry;
    if (!is_away) {
      spdlog::error("quota: removed files cannot be listed: {}", files.status().ToString());
    }
    return files.status();
  }
  absl::flat_hash_set<std::string> there;
  for (const store::RemovedFile& file : *files) {
    there.insert(file.id);
    ledger_.AddListed(SpaceOf(file));
  }
  // One that was removed meanwhile is not among those of before.
  for (const std::string& id : before) {
    if (!there.contains(id)) ledger_.DropRemoved(id);
  }
  return absl::OkStatus();
}

// If the clock is in doubt, the oldest file is unknown. The history's own rounds log that.
bool SpaceCounter::TimeIsInDoubt() {
  store::StoreHealth* const health = store::StoreHealth::Of(store_);
  return health != nullptr && !health->DoubtOfTime().empty();
}

void SpaceCounter::PurgeRemoved() {
  // One after the other, as what changes meanwhile may save the next.
  while (!stopping() && ledger_.rules_number() == counted_rules_) {
    CountChanged();
    const auto beyond = ledger_.OldestRemovedBeyondLimit();
    if (!beyond || TimeIsInDoubt()) return;
    const absl::Status purged = store_.PurgeOneRemoved(beyond->file.id);
    if (!purged.ok() && !absl::IsNotFound(purged)) {
      spdlog::error("quota: removed file={} ({}) cannot be deleted: {}", Quoted(beyond->file.name),
                    beyond->file.id, purged.ToString());
      list_again_ = SystemClock().Monotonic() + kPurgeRetry;
    }
    // One that can't be deleted counts again after the next listing; others may go meanwhile.
    ledger_.DropRemoved(beyond->file.id);
    if (!purged.ok()) continue;  // It was brought back, or its time had ended.
    spdlog::info("quota: removed file={} ({}, {}) is gone for good: {}", Quoted(beyond->file.name),
                 beyond->file.id, HumanBytes(beyond->file.bytes), WhyItGoes(beyond->use));
  }
}

void SpaceCounter::CountAll(uint64_t rules_number) {
  if (!ListRemoved().ok()) return;
  std::string after;
  for (;;) {
    const auto files = store_.List("", after, kFilesAtOnce);
    if (absl::IsUnavailable(files.status())) return;  // As above: the next round tries again.
    if (!files.ok()) {
      spdlog::error("quota: files cannot be listed, and no limit holds: {}",
                    files.status().ToString());
      return;
    }
    if (files->empty()) break;
    after = files->back().name;
    for (const store::FileSummary& file : *files) {
      // Other tables: all begins again.
      if (stopping() || ledger_.rules_number() != rules_number) return;
      // Its cell goes to another server, or this one has no right to answer now.
      if (absl::IsUnavailable(TryMeasure(file.name))) return;
    }
    CountChanged();  // Else those would wait for the end of a long count.
  }
  counted_rules_ = rules_number;
  ledger_.FinishCount(rules_number);
}

void SpaceCounter::CountChanged() {
  absl::flat_hash_set<std::string> names;
  {
    absl::MutexLock lock(&mutex_);
    names.swap(changed_);
  }
  for (const std::string& name : names) {
    if (stopping()) return;
    Measure(name);
  }
}

void SpaceCounter::Measure(const std::string& name) {
  const absl::Status status = TryMeasure(name);
  // Another server's counts there.
  if (absl::IsUnavailable(status) && !rpc::ElsewhereOf(status)) Changed(name);
}

absl::Status SpaceCounter::TryMeasure(const std::string& name) {
  ledger_.BeginMeasure(name);
  const absl::StatusOr<store::HistorySizes> sizes = store_.Measure(name, store::WithHead::kYes);
  absl::StatusOr<uint64_t> tags = 0;
  absl::StatusOr<uint64_t> archived = 0;
  if (sizes.ok()) tags = CountTags(name);
  if (tags.ok() && sizes.ok()) archived = CountArchived(name);
  absl::Status status = sizes.ok() ? tags.status() : sizes.status();
  status.Update(archived.status());
  if (status.ok()) {
    // A new generation is to replace the head.
    ledger_.Measured(
        name, SpaceSizes{std::max(sizes->head, sizes->next), sizes->history(), *tags, *archived});
  } else if (absl::IsNotFound(status)) {
    ledger_.Measured(name, std::nullopt);
  } else if (absl::IsUnavailable(status)) {
    return status;
  } else {  // It counts as it did.
    spdlog::warn("quota: file={} cannot be measured: {}", Quoted(name), status.ToString());
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SpaceCounter::CountTags(const std::string& name) {
  if (!ledger_.LimitsTags(name)) return 0;
  const auto file = store_.OpenFile(name);
  if (absl::IsDataLoss(file.status())) return 0;  // Nobody can tag its versions.
  H5M_RETURN_IF_ERROR(file.status());
  return (*file)->CountTags();
}

absl::StatusOr<uint64_t> SpaceCounter::CountArchived(const std::string& name) {
  if (!ledger_.LimitsArchived(name)) return 0;
  const auto file = store_.OpenFile(name);
  if (absl::IsDataLoss(file.status())) return 0;  // Nobody can archive more of it.
  H5M_RETURN_IF_ERROR(file.status());
  return (*file)->CountArchived();
}

}  // namespace h5mirror::server
