// Metrics of the server's connections.
#ifndef H5MIRROR_SERVER_METRICS_DOOR_GAUGES_H_
#define H5MIRROR_SERVER_METRICS_DOOR_GAUGES_H_

#include <vector>

#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace h5mirror::server {

struct DoorSample;  // front_door.h

// Set() comes from one thread.
class DoorGauges {
 public:
  // `registry` must outlive this.
  explicit DoorGauges(prometheus::Registry& registry);

  void Set(const DoorSample& sample);

 private:
  prometheus::Gauge* connections_;
  prometheus::Gauge* newcomers_;
  std::vector<prometheus::Counter*> turned_;  // by Turned
  prometheus::Counter* refused_calls_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_METRICS_DOOR_GAUGES_H_
