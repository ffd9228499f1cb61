// The metrics of h5mirrord. Every name is listed in docs/reference/metrics.md.
#ifndef H5MIRROR_SERVER_METRICS_METRICS_H_
#define H5MIRROR_SERVER_METRICS_METRICS_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "onion_store/types.h"
#include "prometheus/counter.h"
#include "prometheus/exposer.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/metrics/check_gauges.h"
#include "server/metrics/door_gauges.h"
#include "server/metrics/mirror_gauges.h"
#include "server/metrics/notify_gauges.h"

namespace h5mirror::server {

// Values that are looked up rather than counted.
struct MetricsSample {
  uint64_t resident_bytes = 0;
  uint64_t store_memory_bytes = 0;
  uint64_t free_disk_bytes = 0;
  absl::Time now;
};

// Thread-safe.
class Metrics {
 public:
  explicit Metrics(uint64_t memory_max_bytes);

  void SessionOpened();
  void SessionEnded(absl::StatusCode code);
  void BytesReceived(uint64_t bytes);
  void CutMade(store::BarrierKind kind);
  void CutDurable(store::BarrierKind kind, absl::Duration since_barrier);
  void LeasesExpired(int count);
  void RequestDone(std::string_view method, absl::StatusCode code, absl::Duration took);
  void AuthenticationFailed();
  // Versions that the server itself has dropped; `rule`: retention, history_max_bytes, min_free.
  void VersionsDropped(std::string_view rule, int64_t count);
  // How often callers have reached a limit of [[limits]], since the start.
  void SetLimitsReached(std::string_view limit, uint64_t count);
  void SetStoppedFiles(size_t count);
  void SetAllStopped(bool stopped);
  void SetMinFree(uint64_t bytes);
  void Sample(const MetricsSample& sample);
  CheckGauges& checks() { return checks_; }
  MirrorGauges& mirrors() { return mirrors_; }
  DoorGauges& door() { return door_; }
  NotifyGauges& notify() { return notify_; }

  // Serves /metrics on HOST:PORT. kUnavailable: the address cannot be bound.
  absl::Status Serve(const std::string& address);
  // Gives the port back. Of the thread that called Serve().
  void StopServing() { exposer_.reset(); }
  // The port that Serve() took.
  int port() const;

  // All names, for the test of the documentation.
  std::vector<std::string> Names() const;
  // The value of a gauge without labels, for tests; 0: there is none.
  double GaugeValue(std::string_view name) const;

 private:
  template <typename Builder>
  auto& Register(Builder builder, const char* name, const char* help);

  std::shared_ptr<prometheus::Registry> registry_;
  CheckGauges checks_;
  MirrorGauges mirrors_;
  DoorGauges door_;
  NotifyGauges notify_;
  prometheus::Gauge* sessions_;
  prometheus::Counter* received_bytes_;
  prometheus::Counter* leases_expired_;
  prometheus::Counter* authentication_failures_;
  prometheus::Gauge* resident_bytes_;
  prometheus::Gauge* store_memory_bytes_;
  prometheus::Gauge* free_disk_bytes_;
  prometheus::Gauge* stopped_files_;
  prometheus::Gauge* all_stopped_;
  prometheus::Gauge* min_free_bytes_;
  prometheus::Family<prometheus::Counter>* sessions_total_;
  prometheus::Family<prometheus::Counter>* cuts_total_;
  prometheus::Family<prometheus::Counter>* versions_dropped_;
  prometheus::Family<prometheus::Counter>* limits_reached_;
  prometheus::Family<prometheus::Histogram>* durable_seconds_;
  prometheus::Family<prometheus::Histogram>* request_seconds_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_METRICS_METRICS_H_
