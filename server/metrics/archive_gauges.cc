#include "server/metrics/archive_gauges.h"

#include <algorithm>

namespace h5mirror::server {
namespace {

// A counter that is told its value. A server that tests start in the same process begins anew.
void CountTo(prometheus::Counter& counter, uint64_t value) {
  counter.Increment(std::max(0.0, static_cast<double>(value) - counter.Value()));
}

prometheus::Counter& AddCounter(prometheus::Registry& registry, const char* name,
                                const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

prometheus::Gauge& AddGauge(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
}

}  // namespace

ArchiveGauges::ArchiveGauges()
    : registry_(std::make_shared<prometheus::Registry>()),
      archived_bytes_(
          AddCounter(*registry_, "h5mirror_archive_archived_bytes_total",
                     "Bytes of saved pages, and of copies of files, that went to the archive.")),
      freed_bytes_(AddCounter(*registry_, "h5mirror_archive_freed_bytes_total",
                              "Disk space that archiving has given back.")),
      got_bytes_(AddCounter(*registry_, "h5mirror_archive_read_bytes_total",
                            "Bytes that came from the archive, for readers and for checks.")),
      failed_calls_(AddCounter(*registry_, "h5mirror_archive_failed_calls_total",
                               "Calls of the archive that failed, after all their tries.")),
      failing_(
          AddGauge(*registry_, "h5mirror_archive_failing", "1 while calls of the archive fail.")),
      last_success_seconds_(AddGauge(*registry_, "h5mirror_archive_last_success_time_seconds",
                                     "Unix time of the last call of the archive that "
                                     "succeeded; 0: none.")) {}

ArchiveGauges& ArchiveGauges::Get() {
  static auto& gauges = *new ArchiveGauges();
  return gauges;
}

void ArchiveGauges::Set(const ArchiveSample& sample) {
  CountTo(archived_bytes_, sample.archived_bytes);
  CountTo(freed_bytes_, sample.freed_bytes);
  CountTo(got_bytes_, sample.got_bytes);
  CountTo(failed_calls_, sample.failed_calls);
  failing_.Set(sample.is_failing ? 1 : 0);
  last_success_seconds_.Set(sample.last_success_seconds);
}

}  // namespace h5mirror::server
