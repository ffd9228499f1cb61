#include "server/metrics/mirror_gauges.h"

#include "absl/time/time.h"
#include "rpc/mirror_state_name.h"

namespace h5mirror::server {

MirrorGauges::MirrorGauges(prometheus::Registry& registry) {
  auto& files = prometheus::BuildGauge()
                    .Name("h5mirror_server_mirror_files")
                    .Help("Files by how they stand to the local ones, where that is not in sync.")
                    .Register(registry);
  for (const v1::MirrorState state : {v1::MIRROR_STATE_CONNECTED, v1::MIRROR_STATE_DEGRADED,
                                      v1::MIRROR_STATE_RESYNCING, v1::MIRROR_STATE_DIVERGED}) {
    files_[state] = &files.Add({{"state", rpc::MirrorStateName(state)}});
  }
  const auto lag = [&registry](const char* name, const char* help) {
    return &prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
  };
  lag_cuts_ = lag("h5mirror_server_mirror_lag_cuts",
                  "Cuts of writers that are not durable yet, of the file that has the most.");
  lag_bytes_ = lag("h5mirror_server_mirror_lag_bytes",
                   "Bytes that writers have not brought yet, of the file that lacks the most.");
  lag_seconds_ = lag("h5mirror_server_mirror_lag_seconds",
                     "The longest time for which a file has lacked data of its writer, or its "
                     "writer.");
}

void MirrorGauges::Set(const MirrorSummary& summary) {
  for (const auto& [state, gauge] : files_) {
    const auto found = summary.files.find(state);
    gauge->Set(found == summary.files.end() ? 0 : static_cast<double>(found->second));
  }
  lag_cuts_->Set(static_cast<double>(summary.lag_cuts));
  lag_bytes_->Set(static_cast<double>(summary.lag_bytes));
  lag_seconds_->Set(absl::ToDoubleSeconds(summary.lag));
}

}  // namespace h5mirror::server
