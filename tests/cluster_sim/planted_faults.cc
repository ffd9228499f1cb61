// Wrappers of the product's functions, only in planted_cluster_fault_test.
#include <string_view>

#include "absl/status/status.h"
#include "cluster/ack_guard.h"
#include "cluster/cells.h"
#include "cluster/records.h"
#include "tests/cluster_sim/faults.h"

// For each function: the product's own, and the one that is called instead, by their linker names.
#define H5M_WRAPPED(result, name, symbol, ...)              \
  result Real##name(__VA_ARGS__) __asm__("__real_" symbol); \
  result Faulty##name(__VA_ARGS__) __asm__("__wrap_" symbol)

namespace h5mirror::cluster {

using cluster_sim::Fault;
using cluster_sim::Is;

H5M_WRAPPED(void, RaiseEpoch, "_ZN8h5mirror7cluster10RaiseEpochERNS0_10CellRecordE",
            CellRecord& record);
H5M_WRAPPED(absl::Status, Check,
            "_ZNK8h5mirror7cluster8AckGuard5CheckESt17basic_string_viewIcSt11char_traitsIcEEm",
            const AckGuard* self, std::string_view cell, uint64_t epoch);
H5M_WRAPPED(Route, Resolve,
            "_ZNK8h5mirror7cluster5Cells7ResolveESt17basic_string_viewIcSt11char_traitsIcEEm",
            const Cells* self, std::string_view cell, uint64_t seen_epoch);

void FaultyRaiseEpoch(CellRecord& record) {
  // The first owner always gets an epoch: 0 means that the cell never had an owner.
  if (!Is(Fault::kEpochNotRaised) || record.epoch == 0) RealRaiseEpoch(record);
}

absl::Status FaultyCheck(const AckGuard* self, std::string_view cell, uint64_t epoch) {
  if (Is(Fault::kStaleOwnerAnswers)) return absl::OkStatus();
  return RealCheck(self, cell, epoch);
}

Route FaultyResolve(const Cells* self, std::string_view cell, uint64_t seen_epoch) {
  Route route = RealResolve(self, cell, seen_epoch);
  if (Is(Fault::kRedirectLoop) && route.kind == RouteKind::kWait && route.epoch != 0) {
    route = {RouteKind::kRedirect, route.epoch, "a", "a"};
  }
  return route;
}

}  // namespace h5mirror::cluster
