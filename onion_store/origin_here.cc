#include "onion_store/origin_here.h"

#include <unistd.h>

#include "absl/time/clock.h"
#include "base/who.h"

namespace h5mirror::store {

Origin OriginHere(const std::string& path) {
  return {.machine_id = OwnMachineId(), .host = OwnHost(), .path = path};
}

Provenance ProvenanceNow(const std::string& program, const std::string& comment) {
  Provenance provenance;
  provenance.claimed_user = OwnUser();
  provenance.host = OwnHost();
  provenance.program = program;
  provenance.pid = static_cast<uint32_t>(getpid());
  provenance.comment = comment;
  provenance.client_time = absl::Now();
  return provenance;
}

}  // namespace h5mirror::store
