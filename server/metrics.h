// What h5mirrord tells Prometheus. Every name is listed in docs/operations.md.
#ifndef H5MIRROR_SERVER_METRICS_H_
#define H5MIRROR_SERVER_METRICS_H_

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

namespace h5mirror::server {

// Values that are looked up rather than counted.
struct MetricsSample {
  uint64_t resident_bytes = 0;
  uint64_t store_memory_bytes = 0;
  uint64_t free_disk_bytes = 0;
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
  void Sample(const MetricsSample& sample);

  // Serves /metrics on HOST:PORT. kUnavailable: the address cannot be bound.
  absl::Status Serve(const std::string& address);
  // The port that Serve() took.
  int port() const;

  // All names, for the test of the documentation.
  std::vector<std::string> Names() const;

 private:
  template <typename Builder>
  auto& Register(Builder builder, const char* name, const char* help);

  std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Gauge* sessions_;
  prometheus::Counter* received_bytes_;
  prometheus::Counter* leases_expired_;
  prometheus::Counter* authentication_failures_;
  prometheus::Gauge* resident_bytes_;
  prometheus::Gauge* store_memory_bytes_;
  prometheus::Gauge* free_disk_bytes_;
  prometheus::Family<prometheus::Counter>* sessions_total_;
  prometheus::Family<prometheus::Counter>* cuts_total_;
  prometheus::Family<prometheus::Histogram>* durable_seconds_;
  prometheus::Family<prometheus::Histogram>* request_seconds_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_METRICS_H_
