// Faults planted in the product to check that the simulation finds them. In programs without
// planted_faults.cc there are none.
#ifndef H5MIRROR_TESTS_SIM_PLANTED_H_
#define H5MIRROR_TESTS_SIM_PLANTED_H_

#include <functional>

#include "base/testing/fault_env.h"
#include "rpc/frame_codec.h"

namespace h5mirror::sim {

// The lie of the server's disk; null: none.
FaultEnv::Lie PlantedLie();
// True: a session whose lease was taken never hears of it, and its appended bytes stay in the head.
bool RevocationsAreMissed();
// Changes a request before the server sees it.
void Tamper(rpc::DecodedRequest* request);

// Set by planted_faults.cc.
struct PlantedHooks {
  std::function<FaultEnv::Lie()> lie;
  std::function<bool()> misses_revocations;
  std::function<void(rpc::DecodedRequest*)> tamper;
};
PlantedHooks& Hooks();

}  // namespace h5mirror::sim

#endif  // H5MIRROR_TESTS_SIM_PLANTED_H_
