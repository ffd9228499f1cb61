// Metrics of the receivers of events.
#ifndef H5MIRROR_SERVER_METRICS_NOTIFY_GAUGES_H_
#define H5MIRROR_SERVER_METRICS_NOTIFY_GAUGES_H_

#include <array>

#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "server/settings/notify_rules.h"

namespace h5mirror::server {

struct NotifyCounts;  // notify/receiver.h

// Set() comes from one thread.
class NotifyGauges {
 public:
  // `registry` must outlive this.
  explicit NotifyGauges(prometheus::Registry& registry);

  void Set(const NotifyCounts& counts);

 private:
  struct Counters {
    prometheus::Counter* delivered = nullptr;
    prometheus::Counter* retried = nullptr;
    prometheus::Counter* failed = nullptr;
    prometheus::Counter* dropped = nullptr;
  };

  std::array<Counters, kReceiverKinds> counters_;
  prometheus::Gauge* pending_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_METRICS_NOTIFY_GAUGES_H_
