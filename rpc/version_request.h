// Asks a server for a version in a user's words.
#ifndef H5MIRROR_RPC_VERSION_REQUEST_H_
#define H5MIRROR_RPC_VERSION_REQUEST_H_

#include <string>

#include "h5mirror/v1/versions.pb.h"
#include "rpc/version_spec.h"

namespace h5mirror::rpc {

// The request for `spec`, which must have no number.
v1::FindVersionRequest FindRequest(const std::string& name, const VersionSpec& spec);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_VERSION_REQUEST_H_
