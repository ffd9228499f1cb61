// The faults that planted_cluster_fault_test plants, one at a time.
#ifndef H5MIRROR_TESTS_CLUSTER_SIM_FAULTS_H_
#define H5MIRROR_TESTS_CLUSTER_SIM_FAULTS_H_

#include <cstdint>

namespace h5mirror::cluster_sim {

enum class Fault : uint8_t {
  kNone,
  // ---- Of the product: planted_faults.cc wraps its functions, only in that test ----
  kEpochNotRaised,     // a claim leaves the cell's epoch as it was
  kStaleOwnerAnswers,  // reads are answered without the guard
  kRedirectLoop,       // a server that should say "wait" redirects its caller
  // ---- Of the simulated parts ----
  kNoEviction,      // the fencing says OK, but does nothing
  kLateEviction,    // the fencing says OK, but happens two seconds later
  kOldMapAtOpen,    // a cell is opened by a client that may not know of the fencing yet
  kShortBlocklist,  // addresses stay on the blocklist as long as Ceph itself puts them there
  kNoSizeGuard,     // fsync is believed without the size check
};

void Plant(Fault fault);
bool Is(Fault fault);

}  // namespace h5mirror::cluster_sim

#endif  // H5MIRROR_TESTS_CLUSTER_SIM_FAULTS_H_
