// The two files of a restore: their names, the user's rights to them, and the driver's keys for
// opening them.
#ifndef H5MIRROR_CLI_VERBS_RESTORE_ENDS_H_
#define H5MIRROR_CLI_VERBS_RESTORE_ENDS_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context/context.h"
#include "cli/context/file_arg.h"
#include "h5mirror/v1/files.pb.h"

namespace h5mirror::tools {

// A version that was found.
struct RestoreSource {
  FileArg file;
  int64_t version = 0;
  std::string server;     // as the driver is to reach it
  v1::FileStatus status;  // of the file

  bool is_embedded() const;
  std::string said() const;  // "run.h5@12"
};

// Asks the server of FILE@VERSION, then releases it, because a history beside a file has one user
// at a time.
absl::StatusOr<RestoreSource> FindRestoreSource(Context& context,
                                                const std::string& file_at_version);

struct RestoreTarget {
  enum class Kind {
    kMirrored,  // a local file with mirrors
    kRemote,    // on the server only
    kEmbedded,  // a local file with its history beside it
    kPlain,     // a local file
  };
  Kind kind = Kind::kPlain;
  std::filesystem::path local;   // real; empty for kRemote
  std::vector<FileArg> mirrors;  // of kMirrored; of kRemote the one
  bool is_new = false;           // kPlain: there is no such file yet

  std::string said() const;
};

// `into`: --into; empty: the file itself, which is the local file of its mirror if that is here,
// else the server's.
// Errors: kNotFound            the local file is gone.
//         kFailedPrecondition  it lies on another machine, or another file has its path now.
absl::StatusOr<RestoreTarget> FindRestoreTarget(const RestoreSource& source,
                                                const std::string& into);

// Before anything is changed. Asks the target's own servers, not --server. `changes`: false for a
// dry run, which needs no lock.
//
// Errors: kFailedPrecondition  a program writes the target, its last writer died, it has diverged
//                              from its mirror, or its mirrors have several names.
//         kPermissionDenied    the user may not write it.
absl::Status CheckRestoreTarget(Context& context, const RestoreTarget& target, bool changes);

// The keys of the driver (docs/reference/driver-keys.md), and their values.
using DriverKeys = std::vector<std::pair<std::string, std::string>>;
DriverKeys KeysOfSource(const Context& context, const RestoreSource& source);
DriverKeys KeysOfTarget(const Context& context, const RestoreSource& source,
                        const RestoreTarget& target, const std::string& comment);
// As a TOML file for the driver. A config string has no form for a ';'.
std::string TomlOf(const DriverKeys& keys);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_RESTORE_ENDS_H_
