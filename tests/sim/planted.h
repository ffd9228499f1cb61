// Faults that are planted into the product to see that the simulation finds them. In programs
// without planted_faults.cc there are none.
#ifndef H5MIRROR_TESTS_SIM_PLANTED_H_
#define H5MIRROR_TESTS_SIM_PLANTED_H_

#include <functional>

#include "base/testing/fault_env.h"
#include "rpc/frame_codec.h"

namespace h5mirror::sim {

// What the server's disk lies about; null: nothing.
FaultEnv::Lie PlantedLie();
// True: a session whose lease was taken never hears of it. It holds what it has appended to the
// head.
bool RevocationsAreMissed();
// A request as the server is to see it.
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
