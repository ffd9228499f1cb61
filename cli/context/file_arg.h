// FILE on the command line: a local file with a record of its mirror, or a server's name.
#ifndef H5MIRROR_CLI_CONTEXT_FILE_ARG_H_
#define H5MIRROR_CLI_CONTEXT_FILE_ARG_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/local_record.h"

namespace h5mirror::tools {

struct FileArg {
  std::string name;  // under the server's root
  // From the record, or EmbeddedAddress(); empty: as the flags and files say.
  std::string server;
  // Set for a local file; its path as given, but the target of a symbolic link for
  // ResolveLocalArg().
  std::filesystem::path local;
  std::optional<LocalRecord> record;
  std::string tag;  // of the record: RecordPlace::tag

  RecordPlace place() const { return {local, tag}; }
};

// --server, where it was given.
using WantedServer = std::optional<std::string>;

// A path with a record beside it (X.h5.h5m/client.json), or with a history of its own
// (X.h5.h5m/index), is that local file; anything else is a name under the server's root. Of several
// records it is that of `server`, else one that is level with the file, if there is one.
// Errors: kNotFound an absolute path, or one that starts with ./ or ../, has no record;
//         kDataLoss the record does not parse.
absl::StatusOr<FileArg> ResolveFileArg(const std::string& text, const WantedServer& server);

// The same for a path that must be local; the record may be missing. It lies beside the file that a
// symbolic link leads to, as the driver has it. kFailedPrecondition: the file has its history
// beside it, and no server.
absl::StatusOr<FileArg> ResolveLocalArg(const std::string& path, const WantedServer& server);

// The same for each mirror of the file, ResolveLocalArg()'s first. One entry for each record, or
// only that of `server`; without any record one entry without a record.
absl::StatusOr<std::vector<FileArg>> ResolveMirrorsOf(const std::string& path,
                                                      const WantedServer& server);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_CONTEXT_FILE_ARG_H_
