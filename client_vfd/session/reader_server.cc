#include "client_vfd/session/reader_server.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rpc/agent_socket.h"

namespace h5mirror::vfd {
namespace {

// Whether the path is a socket that this process may connect to, and so may hold the agent.
bool IsTrustedSocket(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  return access(path.c_str(), W_OK) == 0;
}

}  // namespace

std::string FindAgentSocket(const ReaderServer& server) {
  if (server.agent == "off") return "";
  if (server.agent != "auto") return IsTrustedSocket(server.agent) ? server.agent : "";
  for (const std::string& path : {rpc::UserAgentSocket(), rpc::HostAgentSocket()}) {
    if (!path.empty() && IsTrustedSocket(path)) return path;
  }
  return "";
}

}  // namespace h5mirror::vfd
