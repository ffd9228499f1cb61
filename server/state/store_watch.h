// Brings the health of the store into the log and the metrics.
#ifndef H5MIRROR_SERVER_STATE_STORE_WATCH_H_
#define H5MIRROR_SERVER_STATE_STORE_WATCH_H_

#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "onion_store/store.h"
#include "onion_store/store_health.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace h5mirror::server {

// Logs the store's notices since the last call, and returns them. Thread-safe.
std::vector<store::StoreNotice> LogNotices(store::Store& store);

// True: the time of day cannot be trusted, so nothing may be dropped for its age. Logs that, with
// `what`.
bool TimeIsInDoubt(store::Store& store, std::string_view what);

// The store's time of day, so that times fit those of versions.
class StoreClock final : public Clock {
 public:
  // `store` must outlive this.
  explicit StoreClock(store::Store& store) : health_(store::StoreHealth::Of(store)) {}
  absl::Time Now() override { return health_ == nullptr ? steady_.Now() : health_->Now(); }
  absl::Duration Monotonic() override { return steady_.Monotonic(); }

 private:
  store::StoreHealth* const health_;
  SystemClock steady_;
};

// Gauges of the process's one store. Thread-safe.
class StoreGauges {
 public:
  static StoreGauges& Get();
  void Sample(store::Store& store);
  const std::shared_ptr<prometheus::Registry>& registry() const { return registry_; }

 private:
  StoreGauges();

  const std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Counter& lost_pages_;
  prometheus::Gauge& clock_ahead_seconds_;
  prometheus::Gauge& clock_in_doubt_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_STATE_STORE_WATCH_H_
