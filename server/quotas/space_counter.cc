#include "server/quotas/space_counter.h"

#include <pthread.h>

#include <algorithm>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/strings.h"
#include "base/utf8.h"
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

}  // namespace

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
}

void SpaceCounter::CountAll(uint64_t rules_number) {
  std::string after;
  for (;;) {
    const auto files = store_.List("", after, kFilesAtOnce);
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
      Measure(file.name);
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
  ledger_.BeginMeasure(name);
  const absl::StatusOr<store::HistorySizes> sizes = store_.Measure(name, store::WithHead::kYes);
  if (sizes.ok()) {
    // A new generation is to replace the head.
    return ledger_.Measured(name, SpaceSizes{std::max(sizes->head, sizes->next), sizes->history()});
  }
  if (absl::IsNotFound(sizes.status())) return ledger_.Measured(name, std::nullopt);
  // It counts as it did.
  spdlog::warn("quota: file={} cannot be measured: {}", Quoted(name), sizes.status().ToString());
}

}  // namespace h5mirror::server
