// What the store tells of its health, in the log and in metrics.
#ifndef H5MIRROR_SERVER_STATE_STORE_WATCH_H_
#define H5MIRROR_SERVER_STATE_STORE_WATCH_H_

#include <memory>
#include <string_view>

#include "base/clock.h"
#include "onion_store/store.h"
#include "onion_store/store_health.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace h5mirror::server {

// Logs what has happened since the last call. Thread-safe.
void LogNotices(store::Store& store);

// Whether the time of day cannot be trusted to throw things away by, which the log then says of
// `what`.
bool TimeIsInDoubt(store::Store& store, std::string_view what);

// By the store's time of day, so that what goes by it fits the times of versions.
class StoreClock final : public Clock {
 public:
  // `store` must outlive it.
  explicit StoreClock(store::Store& store) : health_(store::StoreHealth::Of(store)) {}
  absl::Time Now() override { return health_ == nullptr ? steady_.Now() : health_->Now(); }
  absl::Duration Monotonic() override { return steady_.Monotonic(); }

 private:
  store::StoreHealth* const health_;
  SystemClock steady_;
};

// Of the process, which has one store. Thread-safe.
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
