// Where h5mirror-agent is found, and how it is told which server is meant.
#ifndef H5MIRROR_RPC_AGENT_SOCKET_H_
#define H5MIRROR_RPC_AGENT_SOCKET_H_

#include <cstdlib>
#include <string>
#include <string_view>

namespace h5mirror::rpc {

// Of a call to an agent: the server's target, as ClientOptions has it.
inline constexpr char kAgentServerKey[] = "x-h5mirror-server";

// The socket of the user's own agent: below XDG_RUNTIME_DIR, else in the user's home, where nobody
// else can put one either. Empty: there is no HOME.
inline std::string UserAgentSocket() {
  const char* directory = std::getenv("XDG_RUNTIME_DIR");
  if (directory != nullptr && *directory == '/') {
    return std::string(directory) + "/h5mirror/agent.sock";
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return "";
  return std::string(home) + "/.local/state/h5mirror/agent.sock";
}

// Of the one that root has set up. Not in /run/h5mirror, which goes with h5mirrord.
inline std::string HostAgentSocket() { return "/run/h5mirror-agent/agent.sock"; }

// Beside an agent's socket the one through which readers get what they map (rpc/cut_map.h).
inline constexpr std::string_view kMapSocketSuffix = ".maps";
inline std::string CutMapSocket(const std::string& agent_socket) {
  return agent_socket + std::string(kMapSocketSuffix);
}

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_AGENT_SOCKET_H_
