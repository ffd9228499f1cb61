// The server and the agent of a reader.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_READER_SERVER_H_
#define H5MIRROR_CLIENT_VFD_SESSION_READER_SERVER_H_

#include <string>

#include "rpc/client_options.h"

namespace h5mirror::vfd {

struct ReaderServer : rpc::ClientOptions {
  // "auto": h5mirror-agent, if its socket is found; "off": never; else the path of its socket.
  std::string agent = "off";
  // The server is asked first, and the agent only if that fails.
  bool passes_agent = false;
};

// The socket of the agent for readers of `server`. With "auto" the user's own agent, else that of
// the host. Empty: there is none.
std::string FindAgentSocket(const ReaderServer& server);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_READER_SERVER_H_
