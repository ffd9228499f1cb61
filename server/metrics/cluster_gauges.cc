#include "server/metrics/cluster_gauges.h"

namespace h5mirror::server {
namespace {

// A counter that is told its value, which only grows.
void CountTo(prometheus::Counter& counter, double value) {
  counter.Increment(value - counter.Value());
}

}  // namespace

ClusterGauges& ClusterGauges::Get() {
  static auto& gauges = *new ClusterGauges();
  return gauges;
}

ClusterGauges::ClusterGauges() : registry_(std::make_shared<prometheus::Registry>()) {
  const auto gauge = [this](const char* name, const char* help) {
    return &prometheus::BuildGauge().Name(name).Help(help).Register(*registry_).Add({});
  };
  const auto counter = [this](const char* name, const char* help) {
    return &prometheus::BuildCounter().Name(name).Help(help).Register(*registry_).Add({});
  };
  cells_ = gauge("h5mirror_server_cluster_cells", "Cells that this server serves now.");
  cells_unserved_ = gauge("h5mirror_server_cluster_cells_unserved",
                          "Cells of the cluster that no server serves, as this one sees it.");
  beat_age_seconds_ = gauge("h5mirror_server_cluster_beat_age_seconds",
                            "Time since the last beat of this server that the registry took.");
  takeovers_ = counter("h5mirror_server_cluster_takeovers_total",
                       "Cells of lost servers that this one has taken over.");
  takeover_seconds_ = counter("h5mirror_server_cluster_takeover_seconds_total",
                              "Time of these, from the look that showed the server lost until the "
                              "cell was served.");
  handovers_ = counter("h5mirror_server_cluster_handovers_total",
                       "Cells that this server has given to others in order.");
  drains_ = counter("h5mirror_server_cluster_drains_total",
                    "How often this server was asked to hand its cells over.");
  fenced_ =
      counter("h5mirror_server_cluster_fenced_total", "Lost servers that this one has fenced.");
  evictions_ = counter("h5mirror_server_cluster_evictions_total",
                       "Servers that this one has given up because an operator wanted it.");
}

void ClusterGauges::Set(const ClusterSample& sample) {
  cells_->Set(sample.cells);
  cells_unserved_->Set(sample.cells_unserved);
  beat_age_seconds_->Set(sample.beat_age_seconds);
  CountTo(*takeovers_, sample.takeovers);
  CountTo(*takeover_seconds_, sample.takeover_seconds);
  CountTo(*handovers_, sample.handovers);
  CountTo(*drains_, sample.drains);
  CountTo(*fenced_, sample.fenced);
  CountTo(*evictions_, sample.evictions);
}

}  // namespace h5mirror::server
