// Metrics of the archive.
#ifndef H5MIRROR_SERVER_METRICS_ARCHIVE_GAUGES_H_
#define H5MIRROR_SERVER_METRICS_ARCHIVE_GAUGES_H_

#include <cstdint>
#include <memory>

#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace h5mirror::server {

struct ArchiveSample {
  uint64_t archived_bytes = 0;
  uint64_t freed_bytes = 0;
  uint64_t got_bytes = 0;
  uint64_t failed_calls = 0;
  bool is_failing = false;
  double last_success_seconds = 0;  // Unix time; 0: none
};

// Of the process. Set() comes from one thread.
class ArchiveGauges {
 public:
  static ArchiveGauges& Get();

  void Set(const ArchiveSample& sample);
  const std::shared_ptr<prometheus::Registry>& registry() const { return registry_; }

 private:
  ArchiveGauges();

  const std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Counter& archived_bytes_;
  prometheus::Counter& freed_bytes_;
  prometheus::Counter& got_bytes_;
  prometheus::Counter& failed_calls_;
  prometheus::Gauge& failing_;
  prometheus::Gauge& last_success_seconds_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_METRICS_ARCHIVE_GAUGES_H_
