#include "server/metrics/check_gauges.h"

#include <algorithm>

namespace h5mirror::server {

CheckGauges::CheckGauges(prometheus::Registry& registry)
    : oldest_equal_age_(&prometheus::BuildGauge()
                             .Name("h5mirror_server_check_oldest_equal_age_seconds")
                             .Help("Age of the oldest last good check, of the files that were ever "
                                   "compared with their local file and found equal.")
                             .Register(registry)
                             .Add({})),
      differing_files_(&prometheus::BuildGauge()
                            .Name("h5mirror_server_check_differing_files")
                            .Help("Files that differed from their local file when they were last "
                                  "compared.")
                            .Register(registry)
                            .Add({})) {}

void CheckGauges::Note(const std::string& name, const store::CheckInfo& check) {
  absl::MutexLock lock(&mutex_);
  checks_[name] = check;
}

void CheckGauges::Renamed(const std::string& name, const std::string& new_name) {
  absl::MutexLock lock(&mutex_);
  if (auto found = checks_.extract(name)) checks_[new_name] = found.mapped();
}

void CheckGauges::Forget(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  checks_.erase(name);
}

void CheckGauges::Sample(absl::Time now) {
  absl::MutexLock lock(&mutex_);
  absl::Duration oldest = absl::ZeroDuration();
  int differing = 0;
  for (const auto& [name, check] : checks_) {
    if (check.differing_bytes > 0) ++differing;
    if (check.equal_time != absl::InfinitePast()) oldest = std::max(oldest, now - check.equal_time);
  }
  oldest_equal_age_->Set(absl::ToDoubleSeconds(oldest));
  differing_files_->Set(differing);
}

}  // namespace h5mirror::server
