// FILE@VERSION on the command line.
#ifndef H5MIRROR_TOOLS_VERSION_SPEC_H_
#define H5MIRROR_TOOLS_VERSION_SPEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/context.h"
#include "tools/time_spec.h"

namespace h5mirror::tools {

// A version as the user names it.
struct VersionSpec {
  // The number, from 1; 0: found by what follows.
  int64_t number = 0;
  // By its tag, if that is not empty; else the newest at or before a time, if there is one.
  std::string tag;
  std::optional<TimeSpec> at;
  // Else by how many versions are newer. 0 is `latest`.
  int64_t back = 0;
  bool operator==(const VersionSpec&) const = default;
};

struct FileAtVersion {
  std::string file;
  VersionSpec version;
};

// For the help of verbs that take FILE@VERSION.
inline constexpr char kVersionHelp[] =
    "the version: its number, latest, latest-K, tag:NAME, or a time "
    "(2026-11-03T14:00, local or with Z or +hh:mm) for the newest of then; FILE as in "
    "`h5mirror log`";

// "12", "latest", "latest-K", "tag:NAME" or a time (tools/time_spec.h), of `zone` if it names none.
// kInvalidArgument quotes the text and says what would be right.
absl::StatusOr<VersionSpec> ParseVersionSpec(std::string_view text, absl::TimeZone zone);

// What follows the last '@' is the version; names may hold others. kInvalidArgument where
// there is no '@'.
absl::StatusOr<FileAtVersion> ParseFileAtVersion(std::string_view text, absl::TimeZone zone);

// The number that `spec` means for the file now; the server finds it. `latest-K` counts the
// versions that exist. A local time is said in UTC on standard error.
// kNotFound: the history is not that long, or has no such tag.
absl::StatusOr<int64_t> ResolveVersion(Context& context, rpc::Client& client,
                                       const std::string& name, const VersionSpec& spec);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_TOOLS_VERSION_SPEC_H_
