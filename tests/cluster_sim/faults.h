// The faults that planted_cluster_fault_test plants, one at a time.
#ifndef H5MIRROR_TESTS_CLUSTER_SIM_FAULTS_H_
#define H5MIRROR_TESTS_CLUSTER_SIM_FAULTS_H_

#include <cstdint>

namespace h5mirror::cluster_sim {

enum class Fault : uint8_t {
  kNone,
  // ---- Of the product: planted_faults.cc stands before its functions, in that test alone ----
  kEpochNotRaised,     // a claim leaves the cell's epoch as it was
  kStaleOwnerAnswers,  // reads are answered without the guard
  kRedirectLoop,       // a server that is to say "wait" sends its caller on
  // ---- Of what is simulated beside it ----
  kNoEviction,      // the fencing says OK and does nothing
  kLateEviction,    // it says OK, and happens two seconds later
  kOldMapAtOpen,    // a cell is opened by a client that may not know of the fencing yet
  kShortBlocklist,  // addresses stay on the blocklist as long as Ceph itself puts them there
  kNoSizeGuard,     // fsync is believed
};

void Plant(Fault fault);
bool Is(Fault fault);

}  // namespace h5mirror::cluster_sim

#endif  // H5MIRROR_TESTS_CLUSTER_SIM_FAULTS_H_
