// A time, and FILE@VERSION, on the command line.
#ifndef H5MIRROR_CLI_CONTEXT_FILE_AT_VERSION_H_
#define H5MIRROR_CLI_CONTEXT_FILE_AT_VERSION_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/context/context.h"
#include "rpc/time_spec.h"
#include "rpc/version_spec.h"

namespace h5mirror::tools {

using rpc::kTimeForm;
using rpc::ParseTimeSpec;
using rpc::ParseVersionSpec;
using rpc::TimeSpec;
using rpc::VersionSpec;

// If the text named no zone, prints to standard error how the time reads in UTC.
void NoteLocalTime(Context& context, const TimeSpec& spec);

struct FileAtVersion {
  std::string file;
  VersionSpec version;
};

// For the help of verbs that take FILE@VERSION.
inline constexpr char kVersionHelp[] =
    "the version: its number, latest, latest-K, tag:NAME, or a time "
    "(2026-11-03T14:00, yesterday, 'monday 14:00', 2h-ago; local or with Z or +hh:mm) for the "
    "newest at that time; FILE as in `h5mirror log`";

// The text after the last '@' is the version; names may hold others. kInvalidArgument if
// there is no '@'.
absl::StatusOr<FileAtVersion> ParseFileAtVersion(std::string_view text, absl::TimeZone zone);

// The number that `spec` means for the file now; the server finds it. `latest-K` counts the
// versions that exist. A local time is said in UTC on standard error.
// kNotFound: the history is not that long, or has no such tag.
absl::StatusOr<int64_t> ResolveVersion(Context& context, rpc::Client& client,
                                       const std::string& name, const VersionSpec& spec);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_CONTEXT_FILE_AT_VERSION_H_
