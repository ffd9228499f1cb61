// Gauges of how files stand to their local files.
#ifndef H5MIRROR_SERVER_METRICS_MIRROR_GAUGES_H_
#define H5MIRROR_SERVER_METRICS_MIRROR_GAUGES_H_

#include <map>

#include "h5mirror/v1/types.pb.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"
#include "server/state/mirror_states.h"

namespace h5mirror::server {

// Labels name states, never files: their number is bounded. Thread-safe.
class MirrorGauges {
 public:
  // `registry` must outlive this.
  explicit MirrorGauges(prometheus::Registry& registry);

  void Set(const MirrorSummary& summary);

 private:
  std::map<v1::MirrorState, prometheus::Gauge*> files_;
  prometheus::Gauge* lag_cuts_;
  prometheus::Gauge* lag_bytes_;
  prometheus::Gauge* lag_seconds_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_METRICS_MIRROR_GAUGES_H_
