// Whether this process may connect to a server's Unix socket. gRPC itself would retry for as long
// as a server may take to come back, and only then report "Permission denied".
#ifndef H5MIRROR_RPC_UNIX_SOCKET_RIGHTS_H_
#define H5MIRROR_RPC_UNIX_SOCKET_RIGHTS_H_

#include "absl/status/status.h"
#include "rpc/client_options.h"

namespace h5mirror::rpc {

// kPermissionDenied: the permissions of the socket, or of a directory on the way, keep this process
// out; the message names them, and the way in. OK: they do not, there is no socket, or the target
// is none. Looks at files, for a refusal twice within 200 ms, and asks the name service; connects
// to nothing. Thread-safe.
absl::Status CheckMayOpenSocket(const ClientOptions& options);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_UNIX_SOCKET_RIGHTS_H_
