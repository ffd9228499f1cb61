#include "server/metrics/door_gauges.h"

#include <string>

#include "server/door/front_door.h"

namespace h5mirror::server {
namespace {

// A counter that is told its value, which only grows.
void CountTo(prometheus::Counter& counter, uint64_t value) {
  counter.Increment(static_cast<double>(value) - counter.Value());
}

}  // namespace

DoorGauges::DoorGauges(prometheus::Registry& registry) {
  const auto gauge = [&registry](const char* name, const char* help) {
    return &prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
  };
  connections_ = gauge("h5mirror_server_connections", "Connections that are open now.");
  newcomers_ = gauge("h5mirror_server_new_connections",
                     "Connections that are open now and have shown no valid token yet.");
  auto& turned = prometheus::BuildCounter()
                     .Name("h5mirror_server_connections_turned_total")
                     .Help("Connections that were refused or cut, by reason.")
                     .Register(registry);
  for (int i = 0; i < kTurnedCount; ++i) {
    turned_.push_back(&turned.Add({{"reason", std::string(NameOf(static_cast<Turned>(i)))}}));
  }
  refused_calls_ = &prometheus::BuildCounter()
                        .Name("h5mirror_server_calls_refused_total")
                        .Help(
                            "Calls refused at their headers: too many of their connection, or of "
                            "all, had not begun.")
                        .Register(registry)
                        .Add({});
}

void DoorGauges::Set(const DoorSample& sample) {
  connections_->Set(static_cast<double>(sample.connections.connections));
  newcomers_->Set(static_cast<double>(sample.connections.newcomers));
  for (int i = 0; i < kTurnedCount; ++i)
    CountTo(*turned_[static_cast<size_t>(i)], sample.turned[static_cast<size_t>(i)]);
  CountTo(*refused_calls_, sample.refused_calls);
}

}  // namespace h5mirror::server
