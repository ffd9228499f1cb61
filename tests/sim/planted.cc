#include "tests/sim/planted.h"

namespace h5mirror::sim {

PlantedHooks& Hooks() {
  static PlantedHooks hooks;
  return hooks;
}

FaultEnv::Lie PlantedLie() { return Hooks().lie ? Hooks().lie() : nullptr; }

bool RevocationsAreMissed() { return Hooks().misses_revocations && Hooks().misses_revocations(); }

void Tamper(rpc::DecodedRequest* request) {
  if (Hooks().tamper) Hooks().tamper(request);
}

}  // namespace h5mirror::sim
