#include "tests/cluster_sim/faults.h"

#include <atomic>

namespace h5mirror::cluster_sim {
namespace {

// Simulations run in several threads.
std::atomic<Fault> planted{Fault::kNone};

}  // namespace

void Plant(Fault fault) { planted = fault; }
bool Is(Fault fault) { return planted == fault; }

}  // namespace h5mirror::cluster_sim
