#include "client_vfd/embedded/identity.h"

#include <unistd.h>

#include "absl/time/clock.h"
#include "client_vfd/session/who.h"

namespace h5mirror::vfd {

store::Origin OriginOf(const std::string& path) {
  return {.machine_id = OwnMachineId(), .host = OwnHost(), .path = path};
}

store::Provenance ProvenanceOf(const std::string& program, const std::string& comment) {
  store::Provenance provenance;
  provenance.claimed_user = OwnUser();
  provenance.host = OwnHost();
  provenance.program = program;
  provenance.pid = static_cast<uint32_t>(getpid());
  provenance.comment = comment;
  provenance.client_time = absl::Now();
  return provenance;
}

}  // namespace h5mirror::vfd
