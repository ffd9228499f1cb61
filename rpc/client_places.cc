#include "rpc/client_places.h"

#include <cstdlib>

namespace h5mirror::rpc {

std::vector<std::filesystem::path> StandardDirectories() {
  std::vector<std::filesystem::path> directories;
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') {
    directories.push_back(std::filesystem::path(home) / ".config/h5mirror");
  }
  directories.emplace_back("/etc/h5mirror");
  return directories;
}

}  // namespace h5mirror::rpc
