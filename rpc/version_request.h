// Asks a server for a version that people named.
#ifndef H5MIRROR_RPC_VERSION_REQUEST_H_
#define H5MIRROR_RPC_VERSION_REQUEST_H_

#include <string>

#include "h5mirror/v1/versions.pb.h"
#include "rpc/version_spec.h"

namespace h5mirror::rpc {

// What to ask the server for. `spec` has no number.
v1::FindVersionRequest FindRequest(const std::string& name, const VersionSpec& spec);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_VERSION_REQUEST_H_
