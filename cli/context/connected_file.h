// FILE or FILE@VERSION on the command line, found with the server that has it.
#ifndef H5MIRROR_CLI_CONTEXT_CONNECTED_FILE_H_
#define H5MIRROR_CLI_CONTEXT_CONNECTED_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "cli/context/context.h"
#include "cli/context/file_arg.h"
#include "cli/context/file_at_version.h"

namespace h5mirror::tools {

struct ConnectedFile : FileArg {
  rpc::Client* client;  // of the context
};

struct ConnectedVersion : ConnectedFile {
  int64_t version;
};

// Errors: as ResolveFileArg() and Context::Connect().
absl::StatusOr<ConnectedFile> ConnectFile(Context& context, const std::string& file);

// `text`: FILE@VERSION. Errors: as ParseFileAtVersion(), ConnectFile() and ResolveVersion().
absl::StatusOr<ConnectedVersion> ConnectVersion(Context& context, const std::string& text);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_CONTEXT_CONNECTED_FILE_H_
