// Where a reader's bytes come from.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_READER_SERVER_H_
#define H5MIRROR_CLIENT_VFD_SESSION_READER_SERVER_H_

#include <string>

#include "rpc/client_options.h"

namespace h5mirror::vfd {

struct ReaderServer : rpc::ClientOptions {
  // "auto": h5mirror-agent where it is found; "off": never; else the path of its socket.
  std::string agent = "off";
};

// The socket of the agent that readers of `server` go through: under auto the one of the user's
// own, else that of the host. Empty: none is there.
std::string FindAgentSocket(const ReaderServer& server);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_READER_SERVER_H_
