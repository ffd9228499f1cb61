#include "server/metrics/metrics.h"

#include <exception>

#include "absl/time/clock.h"
#include "base/strings.h"
#include "base/version.h"
#include "server/metrics/archive_gauges.h"
#include "server/metrics/cluster_gauges.h"
#include "server/state/store_watch.h"

namespace h5mirror::server {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;

// Seconds, from a page-cached local call to a slow disk.
const prometheus::Histogram::BucketBoundaries& Buckets() {
  static const auto* buckets = new prometheus::Histogram::BucketBoundaries{
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
  return *buckets;
}

const char* NameOf(store::BarrierKind kind) {
  switch (kind) {
    case store::BarrierKind::kTick:
      return "tick";
    case store::BarrierKind::kSync:
      return "sync";
    case store::BarrierKind::kCommit:
      return "commit";
  }
  return "unknown";
}

}  // namespace

template <typename Builder>
auto& Metrics::Register(Builder builder, const char* name, const char* help) {
  return builder.Name(name).Help(help).Register(*registry_);
}

Metrics::Metrics(uint64_t memory_max_bytes)
    : registry_(std::make_shared<prometheus::Registry>()),
      checks_(*registry_),
      mirrors_(*registry_),
      door_(*registry_),
      notify_(*registry_) {
  sessions_ =
      &Register(BuildGauge(), "h5mirror_server_sessions", "Sessions that are open now.").Add({});
  sessions_total_ = &Register(BuildCounter(), "h5mirror_server_sessions_total",
                              "Sessions that have ended, by status code.");
  received_bytes_ = &Register(BuildCounter(), "h5mirror_server_received_bytes_total",
                              "Bytes of file content received from writers.")
                         .Add({});
  cuts_total_ = &Register(BuildCounter(), "h5mirror_server_cuts_total", "Cuts made, by kind.");
  durable_seconds_ = &Register(BuildHistogram(), "h5mirror_server_cut_durable_seconds",
                               "Time from a barrier to its cut being durable, by kind.");
  leases_expired_ = &Register(BuildCounter(), "h5mirror_server_leases_expired_total",
                              "Leases taken from writers that were silent for lease_ttl.")
                         .Add({});
  request_seconds_ = &Register(BuildHistogram(), "h5mirror_server_request_seconds",
                               "Time that calls took, by method and status code.");
  authentication_failures_ =
      &Register(BuildCounter(), "h5mirror_server_authentication_failures_total",
                "Calls refused for want of a known token.")
           .Add({});
  resident_bytes_ = &Register(BuildGauge(), "h5mirror_server_memory_resident_bytes",
                              "Resident memory of the process.")
                         .Add({});
  store_memory_bytes_ = &Register(BuildGauge(), "h5mirror_server_memory_store_bytes",
                                  "Memory that the store counts against its share.")
                             .Add({});
  Register(BuildGauge(), "h5mirror_server_memory_max_bytes", "The setting memory_max.")
      .Add({})
      .Set(static_cast<double>(memory_max_bytes));
  free_disk_bytes_ = &Register(BuildGauge(), "h5mirror_server_free_disk_bytes",
                               "Free bytes on the root's filesystem.")
                          .Add({});
  min_free_bytes_ = &Register(BuildGauge(), "h5mirror_server_min_free_bytes",
                              "The setting min_free, in bytes; 0: it is not set.")
                         .Add({});
  stopped_files_ = &Register(BuildGauge(), "h5mirror_server_history_stopped_files",
                             "Files that get no new versions, since history_max_bytes is reached.")
                        .Add({});
  all_stopped_ = &Register(BuildGauge(), "h5mirror_server_history_stopped",
                           "1 while no file gets new versions, since min_free is reached.")
                      .Add({});
  versions_dropped_ = &Register(BuildCounter(), "h5mirror_server_versions_dropped_total",
                                "Versions that the server dropped by itself, by rule.");
  limits_reached_ = &Register(BuildCounter(), "h5mirror_server_limits_reached_total",
                              "Calls refused, and for bandwidth waits of streams, as their caller "
                              "was over a limit, by limit.");
  Register(BuildGauge(), "h5mirror_server_start_time_seconds", "Start of the process, Unix time.")
      .Add({})
      .Set(absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));
  Register(BuildGauge(), "h5mirror_server_info", "Always 1; the label is the version.")
      .Add({{"version", std::string(kVersion)}})
      .Set(1);
}

void Metrics::SessionOpened() { sessions_->Increment(); }

void Metrics::SessionEnded(absl::StatusCode code) {
  sessions_->Decrement();
  sessions_total_->Add({{"code", absl::StatusCodeToString(code)}}).Increment();
}

void Metrics::BytesReceived(uint64_t bytes) {
  received_bytes_->Increment(static_cast<double>(bytes));
}

void Metrics::CutMade(store::BarrierKind kind) {
  cuts_total_->Add({{"kind", NameOf(kind)}}).Increment();
}

void Metrics::CutDurable(store::BarrierKind kind, absl::Duration since_barrier) {
  durable_seconds_->Add({{"kind", NameOf(kind)}}, Buckets())
      .Observe(absl::ToDoubleSeconds(since_barrier));
}

void Metrics::LeasesExpired(int count) { leases_expired_->Increment(count); }

void Metrics::RequestDone(std::string_view method, absl::StatusCode code, absl::Duration took) {
  request_seconds_
      ->Add({{"method", std::string(method)}, {"code", absl::StatusCodeToString(code)}}, Buckets())
      .Observe(absl::ToDoubleSeconds(took));
}

void Metrics::AuthenticationFailed() { authentication_failures_->Increment(); }

void Metrics::VersionsDropped(std::string_view rule, int64_t count) {
  versions_dropped_->Add({{"rule", std::string(rule)}}).Increment(static_cast<double>(count));
}

void Metrics::SetLimitsReached(std::string_view limit, uint64_t count) {
  prometheus::Counter& counter = limits_reached_->Add({{"limit", std::string(limit)}});
  counter.Increment(static_cast<double>(count) - counter.Value());
}

void Metrics::SetStoppedFiles(size_t count) { stopped_files_->Set(static_cast<double>(count)); }

void Metrics::SetAllStopped(bool stopped) { all_stopped_->Set(stopped ? 1 : 0); }

void Metrics::SetMinFree(uint64_t bytes) { min_free_bytes_->Set(static_cast<double>(bytes)); }

void Metrics::Sample(const MetricsSample& sample) {
  resident_bytes_->Set(static_cast<double>(sample.resident_bytes));
  store_memory_bytes_->Set(static_cast<double>(sample.store_memory_bytes));
  free_disk_bytes_->Set(static_cast<double>(sample.free_disk_bytes));
  checks_.Sample(sample.now);
}

absl::Status Metrics::Serve(const std::string& address) {
  try {
    exposer_ = std::make_unique<prometheus::Exposer>(address, 1);
    exposer_->RegisterCollectable(registry_);
    exposer_->RegisterCollectable(StoreGauges::Get().registry());
    exposer_->RegisterCollectable(ClusterGauges::Get().registry());
    exposer_->RegisterCollectable(ArchiveGauges::Get().registry());
  } catch (const std::exception& error) {
    return absl::UnavailableError(StrCat("metrics_listen = \"", address,
                                         "\" cannot be served; is the port in use? (", error.what(),
                                         ")"));
  }
  return absl::OkStatus();
}

int Metrics::port() const {
  return exposer_ == nullptr ? 0 : exposer_->GetListeningPorts().front();
}

std::vector<std::string> Metrics::Names() const {
  std::vector<std::string> names;
  for (const auto& registry : {registry_, StoreGauges::Get().registry(),
                               ClusterGauges::Get().registry(), ArchiveGauges::Get().registry()}) {
    for (const prometheus::MetricFamily& family : registry->Collect()) names.push_back(family.name);
  }
  return names;
}

double Metrics::GaugeValue(std::string_view name) const {
  for (const prometheus::MetricFamily& family : registry_->Collect()) {
    if (family.name == name && !family.metric.empty()) return family.metric.front().gauge.value;
  }
  return 0;
}

}  // namespace h5mirror::server
