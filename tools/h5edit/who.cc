#include "tools/h5edit/who.h"

#include <limits.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "absl/time/clock.h"

namespace h5mirror::edit {
namespace {

std::string HostHere() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string UserHere() {
  const passwd* const entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(geteuid());
}

}  // namespace

store::Origin OriginHere(const std::filesystem::path& path) {
  store::Origin origin{.machine_id = "", .host = HostHere(), .path = path.string()};
  std::ifstream("/etc/machine-id") >> origin.machine_id;
  if (origin.machine_id.empty()) origin.machine_id = origin.host;
  return origin;
}

store::Provenance ProvenanceNow(const std::string& program, const std::string& comment) {
  store::Provenance provenance;
  provenance.claimed_user = UserHere();
  provenance.host = HostHere();
  provenance.program = program;
  provenance.pid = static_cast<uint32_t>(getpid());
  provenance.comment = comment;
  provenance.client_time = absl::Now();
  return provenance;
}

}  // namespace h5mirror::edit
