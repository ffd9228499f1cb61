#include "server/metrics/notify_gauges.h"

#include <string>

#include "server/notify/receiver.h"

namespace h5mirror::server {
namespace {

// A counter that is told its value, which only grows.
void CountTo(prometheus::Counter& counter, uint64_t value) {
  counter.Increment(static_cast<double>(value) - counter.Value());
}

}  // namespace

NotifyGauges::NotifyGauges(prometheus::Registry& registry)
    : pending_(&prometheus::BuildGauge()
                    .Name("h5mirror_server_notify_pending")
                    .Help("Events that wait to be delivered to a receiver of [[notify]].")
                    .Register(registry)
                    .Add({})) {
  auto& events = prometheus::BuildCounter()
                     .Name("h5mirror_server_notify_events_total")
                     .Help("Events for receivers of [[notify]], by receiver and result.")
                     .Register(registry);
  for (size_t i = 0; i < kReceiverKinds; ++i) {
    const std::string receiver(ReceiverName(static_cast<ReceiverKind>(i)));
    const auto counter = [&](const char* result) {
      return &events.Add({{"receiver", receiver}, {"result", result}});
    };
    counters_[i] = {counter("delivered"), counter("retried"), counter("failed"),
                    counter("dropped")};
  }
}

void NotifyGauges::Set(const NotifyCounts& counts) {
  for (size_t i = 0; i < kReceiverKinds; ++i) {
    CountTo(*counters_[i].delivered, counts.results[i].delivered);
    CountTo(*counters_[i].retried, counts.results[i].retried);
    CountTo(*counters_[i].failed, counts.results[i].failed);
    CountTo(*counters_[i].dropped, counts.results[i].dropped);
  }
  pending_->Set(static_cast<double>(counts.pending));
}

}  // namespace h5mirror::server
