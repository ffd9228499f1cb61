#include "client_vfd/plugin/host/this_process.h"

#include <limits.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>

namespace h5mirror::vfd {

const std::string& HostName() {
  static const auto* const known = [] {
    std::array<char, HOST_NAME_MAX + 1> name{};
    const bool found = gethostname(name.data(), name.size() - 1) == 0;
    return new std::string(found ? name.data() : "localhost");
  }();
  return *known;
}

// umask(2) cannot be asked without being set, which another thread might see.
unsigned NewFileMode() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    unsigned mask = 0;
    if (std::sscanf(line.c_str(), "Umask: %o", &mask) == 1) return 0666 & ~mask;
  }
  return 0644;
}

}  // namespace h5mirror::vfd
