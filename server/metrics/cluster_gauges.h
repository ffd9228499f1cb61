// Metrics of a server's part in its cluster.
#ifndef H5MIRROR_SERVER_METRICS_CLUSTER_GAUGES_H_
#define H5MIRROR_SERVER_METRICS_CLUSTER_GAUGES_H_

#include <memory>

#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace h5mirror::server {

// Since the start of the process, as cluster::NodeCounts.
struct ClusterSample {
  double cells = 0;
  double cells_unserved = 0;
  double beat_age_seconds = 0;
  double takeovers = 0;
  double takeover_seconds = 0;
  double handovers = 0;
  double drains = 0;
  double fenced = 0;
  double evictions = 0;
};

// One for the process, beside Metrics. All zero in a server of no cluster. Set() comes from one
// thread.
class ClusterGauges {
 public:
  static ClusterGauges& Get();
  void Set(const ClusterSample& sample);
  const std::shared_ptr<prometheus::Registry>& registry() const { return registry_; }

 private:
  ClusterGauges();

  const std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Gauge* cells_;
  prometheus::Gauge* cells_unserved_;
  prometheus::Gauge* beat_age_seconds_;
  prometheus::Counter* takeovers_;
  prometheus::Counter* takeover_seconds_;
  prometheus::Counter* handovers_;
  prometheus::Counter* drains_;
  prometheus::Counter* fenced_;
  prometheus::Counter* evictions_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_METRICS_CLUSTER_GAUGES_H_
