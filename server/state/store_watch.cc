#include "server/state/store_watch.h"

#include <string>

#include "base/utf8.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {

std::vector<store::StoreNotice> LogNotices(store::Store& store) {
  store::StoreHealth* const health = store::StoreHealth::Of(store);
  if (health == nullptr) return {};
  std::vector<store::StoreNotice> notices = health->TakeNotices();
  for (const store::StoreNotice& notice : notices) {
    if (notice.kind == store::StoreNotice::Kind::kClock) {
      spdlog::warn("clock: {}", notice.text);
    } else if (notice.kind == store::StoreNotice::Kind::kNoAccessList) {
      spdlog::warn("store: file={} {}", Quoted(notice.file), notice.text);
    } else if (notice.kind == store::StoreNotice::Kind::kUnreadable) {
      spdlog::warn("store: directory={} {}", Quoted(notice.file), notice.text);
    } else {
      spdlog::error("store: file={} {}", Quoted(notice.file), notice.text);
    }
  }
  return notices;
}

bool TimeIsInDoubt(store::Store& store, std::string_view what) {
  store::StoreHealth* const health = store::StoreHealth::Of(store);
  const std::string doubt = health == nullptr ? "" : health->DoubtOfTime();
  if (!doubt.empty()) spdlog::warn("{}: nothing is dropped for its age now: {}", what, doubt);
  return !doubt.empty();
}

StoreGauges::StoreGauges()
    : registry_(std::make_shared<prometheus::Registry>()),
      lost_pages_(prometheus::BuildCounter()
                      .Name("h5mirror_store_lost_pages_total")
                      .Help("Pages of versions that were found damaged before they were saved.")
                      .Register(*registry_)
                      .Add({})),
      clock_ahead_seconds_(
          prometheus::BuildGauge()
              .Name("h5mirror_server_clock_ahead_seconds")
              .Help("By how much the machine's clock is ahead of the time that versions get.")
              .Register(*registry_)
              .Add({})),
      clock_in_doubt_(
          prometheus::BuildGauge()
              .Name("h5mirror_server_clock_in_doubt")
              .Help("1 while nothing is dropped for its age, because the clock was set.")
              .Register(*registry_)
              .Add({})) {}

StoreGauges& StoreGauges::Get() {
  static auto& gauges = *new StoreGauges();
  return gauges;
}

void StoreGauges::Sample(store::Store& store) {
  store::StoreHealth* const health = store::StoreHealth::Of(store);
  if (health == nullptr) return;
  lost_pages_.Increment(static_cast<double>(health->lost_pages()) - lost_pages_.Value());
  clock_ahead_seconds_.Set(absl::ToDoubleSeconds(health->ClockAhead()));
  clock_in_doubt_.Set(health->DoubtOfTime().empty() ? 0 : 1);
}

}  // namespace h5mirror::server
