#include "base/who.h"

#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace h5mirror {
namespace {

std::string ReadHost() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string ReadMachineId(const std::string& host) {
  std::string id;
  std::ifstream("/etc/machine-id") >> id;
  return id.empty() ? host : id;
}

// The user's name if the process can read no entry for the user: in a sandbox, or in a container
// with a uid of its own.
std::string NamedUser() {
  const char* named = getenv("LOGNAME");
  return named != nullptr && *named != '\0' ? named : std::to_string(geteuid());
}

std::string ReadUser() {
  std::array<char, 4096> buffer;
  passwd entry{};
  passwd* found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
      found != nullptr) {
    return found->pw_name;
  }
  return NamedUser();
}

}  // namespace

const std::string& OwnHost() {
  static const auto* host = new std::string(ReadHost());
  return *host;
}

const std::string& OwnMachineId() {
  static const auto* machine_id = new std::string(ReadMachineId(OwnHost()));
  return *machine_id;
}

const std::string& OwnUser() {
  static const auto* user = new std::string(ReadUser());
  return *user;
}

}  // namespace h5mirror
