// Gauges of comparisons of local files with their mirrors (Files.RecordCheck).
#ifndef H5MIRROR_SERVER_METRICS_CHECK_GAUGES_H_
#define H5MIRROR_SERVER_METRICS_CHECK_GAUGES_H_

#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "onion_store/types.h"
#include "prometheus/gauge.h"
#include "prometheus/registry.h"

namespace h5mirror::server {

// Knows the files that were ever compared, one small entry each. Thread-safe.
class CheckGauges {
 public:
  // `registry` must outlive this.
  explicit CheckGauges(prometheus::Registry& registry);

  void Note(const std::string& name, const store::CheckInfo& check);
  void Renamed(const std::string& name, const std::string& new_name);
  void Forget(const std::string& name);
  // Brings the gauges up to date.
  void Sample(absl::Time now);

 private:
  prometheus::Gauge* oldest_equal_age_;
  prometheus::Gauge* differing_files_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, store::CheckInfo> checks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_METRICS_CHECK_GAUGES_H_
