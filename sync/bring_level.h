// A closed local file becomes a version of its mirror; only what differs is fetched.
#ifndef H5MIRROR_SYNC_BRING_LEVEL_H_
#define H5MIRROR_SYNC_BRING_LEVEL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/output/progress.h"
#include "rpc/client.h"
#include "sync/closed_copy.h"
#include "sync/local_file.h"
#include "sync/temp_file.h"

namespace h5mirror::tools {

struct LevelResult {
  // Destroyed: the lock on the new file is given back.
  TempFile file;
  FileStat stat;  // the new file's
  uint64_t differing_bytes = 0;
  uint64_t received_bytes = 0;
  uint64_t digest_bytes = 0;
  // Where the new file differs from the version: a writer had the file open at its cut.
  std::optional<SuperblockPatch> patch;
};

// Makes a copy of `file` beside it (by shared blocks where the filesystem can). Puts the version's
// bytes into the copy where they differ, syncs it and renames it over the file. A program that
// opens the name finds the whole old file or the whole new one, also after a crash. `file` must be
// locked exclusively; the new one is, as long as the result lives.
// Errors: kAborted the file changed meanwhile; those of the server's calls; the disk's.
absl::StatusOr<LevelResult> BringLevel(rpc::Client& client, const std::string& name,
                                       const v1::Version& version, const LocalFile& file,
                                       Progress& progress);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_BRING_LEVEL_H_
