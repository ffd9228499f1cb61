#include "cli/context/connected_file.h"

#include "base/status_macros.h"

namespace h5mirror::tools {

absl::StatusOr<ConnectedFile> ConnectFile(Context& context, const std::string& file) {
  H5M_ASSIGN_OR_RETURN(FileArg arg, ResolveFileArg(file, context.flags().client.server));
  H5M_ASSIGN_OR_RETURN(rpc::Client * client, context.Connect(arg));
  return ConnectedFile{std::move(arg), client};
}

absl::StatusOr<ConnectedVersion> ConnectVersion(Context& context, const std::string& text) {
  H5M_ASSIGN_OR_RETURN(const FileAtVersion wanted,
                       ParseFileAtVersion(text, context.streams().zone));
  H5M_ASSIGN_OR_RETURN(ConnectedFile file, ConnectFile(context, wanted.file));
  H5M_ASSIGN_OR_RETURN(const int64_t number,
                       ResolveVersion(context, *file.client, file.name, wanted.version));
  return ConnectedVersion{std::move(file), number};
}

}  // namespace h5mirror::tools
