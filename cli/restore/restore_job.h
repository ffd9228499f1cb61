// The request of the CLI to its helper h5mirror-restore, and the answer. The helper has HDF5 and
// the driver, which brings gRPC. The CLI has gRPC itself. Both cannot be in one process, because
// protobuf registers each message only once.
//
//   CLI     finds files, versions, servers and rights; looks for a writer
//   helper  copies the object between two files that the driver opens
//
// The helper takes the name of a file with the job. On its standard output it prints lines:
// kProgressLine and a count of bytes, any number of times, then kResultLine and the result.
#ifndef H5MIRROR_CLI_RESTORE_RESTORE_JOB_H_
#define H5MIRROR_CLI_RESTORE_RESTORE_JOB_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace h5mirror::tools {

inline constexpr char kRestoreHelperFile[] = "h5mirror-restore";
inline constexpr std::string_view kProgressLine = "progress ";
inline constexpr std::string_view kResultLine = "result ";

// A file as the driver opens it.
struct FileToOpen {
  std::string said;    // for messages, "run.h5@12"
  std::string path;    // that HDF5 is given
  std::string config;  // the driver's config string; empty: HDF5's own driver
};

struct RestoreJob {
  std::string plugin_dir;
  FileToOpen source;
  FileToOpen target;
  bool makes_target = false;            // the target is a new file
  std::string becomes;                  // the name that a new file gets when it is whole
  bool is_mirrored = false;             // the target has a mirror
  std::string path;                     // of the object, in the source
  std::string as;                       // and in the target
  std::vector<std::string> attributes;  // not empty: only these, of an object that is there
  bool replaces = false;
  bool dry_run = false;
  std::string grows;  // the local file whose growth is the progress; empty: nothing is told
};

// References of one object that become null.
struct LostReferences {
  std::string object;  // in the target
  std::string leads_to;
  uint64_t count = 0;
  // The target's object at that path: "missing", "other_kind", "other_file" behind an external
  // link, "too_small" for a region; or "no_region" that can be read, "no_name" in the source.
  std::string why;
  bool removed = false;  // they led to the replaced object, and `why` is of the copy
};

// Two paths that led to one object, and lead to two.
struct Split {
  std::string object;  // the restored one
  std::string other;   // stays as it is
};

// The result, also of a dry run.
struct RestoreResult {
  std::string kind;  // "group", "dataset", "datatype", "soft link", "external link", "link"
  bool replaced = false;
  uint64_t objects = 0;  // the object, and all below it
  uint64_t links = 0;    // soft and external links below it
  uint64_t attributes = 0;
  uint64_t bytes = 0;                    // of raw data as stored
  std::vector<std::string> made_groups;  // parents that were missing
  uint64_t other_names = 0;              // hard links that still lead to the replaced object
  uint64_t references = 0;               // that were set anew in the object
  uint64_t led_over = 0;                 // of other objects, from the replaced object
  std::vector<LostReferences> lost;
  std::string old_kind;      // of the replaced object, as `kind`; empty: none
  uint64_t old_objects = 0;  // that no path leads to any more
  uint64_t old_bytes = 0;    // of their raw data, as stored
  uint64_t split_count = 0;
  std::vector<Split> splits;  // the first of them
  uint64_t scaled_count = 0;  // datasets with a dimension scale elsewhere, that does not list them
  std::vector<std::string> scaled;  // the first of them
};

// As text of one line, without loss: names in a file may be any bytes.
std::string EncodeJob(const RestoreJob& job);
std::string EncodeResult(const absl::StatusOr<RestoreResult>& result);
// kInternal: `text` does not parse. Otherwise DecodeResult() returns the encoded status.
absl::StatusOr<RestoreJob> DecodeJob(std::string_view text);
absl::StatusOr<RestoreResult> DecodeResult(std::string_view text);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_RESTORE_RESTORE_JOB_H_
