// The sockets of h5mirror-agent, and how a call to it names the server.
#ifndef H5MIRROR_RPC_AGENT_SOCKET_H_
#define H5MIRROR_RPC_AGENT_SOCKET_H_

#include <cstdlib>
#include <string>
#include <string_view>

namespace h5mirror::rpc {

// The metadata key of a call to an agent: the server's target, as ClientOptions has it.
inline constexpr char kAgentServerKey[] = "x-h5mirror-server";

// The socket of the user's own agent: below XDG_RUNTIME_DIR, else in the user's home. No other user
// can put a socket there. Empty: there is no HOME.
inline std::string UserAgentSocket() {
  const char* directory = std::getenv("XDG_RUNTIME_DIR");
  if (directory != nullptr && *directory == '/') {
    return std::string(directory) + "/h5mirror/agent.sock";
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return "";
  return std::string(home) + "/.local/state/h5mirror/agent.sock";
}

// The socket of the host's agent, set up by root. Not in /run/h5mirror, which is removed when
// h5mirrord stops.
inline std::string HostAgentSocket() { return "/run/h5mirror-agent/agent.sock"; }

// The suffix of the socket, beside an agent's, for maps of metadata (rpc/cut_map.h).
inline constexpr std::string_view kMapSocketSuffix = ".maps";
inline std::string CutMapSocket(const std::string& agent_socket) {
  return agent_socket + std::string(kMapSocketSuffix);
}

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_AGENT_SOCKET_H_
