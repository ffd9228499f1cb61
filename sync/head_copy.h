// A version copied on the machine of the server: the head's bytes from the head itself, the rest
// from the server.
#ifndef H5MIRROR_SYNC_HEAD_COPY_H_
#define H5MIRROR_SYNC_HEAD_COPY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/output/progress.h"
#include "rpc/client.h"

namespace h5mirror::tools {

// Fills the empty file `fd` (`path` for messages) with version `version` (0: the newest), and
// returns it. Blocks are shared where the filesystem can (FICLONE), holes are kept; not synced.
// Returns nothing, and leaves the file empty, where
//   - the server is on another machine, or the user has no right to read its files;
//   - the head is of another generation, or does not hold the version's cut yet.
//
// A writer is not disturbed, and may change the head meanwhile. So each piece is copied first. Then
// the server tells where the piece's pages lie, and their checksums. Pages that were not in the
// head, or do not match, are read from the server. So each byte was checked, here or there.
//
// Errors: those of MapVersion and ReadVersion; of writing `path`.
absl::StatusOr<std::optional<v1::Version>> CopyFromHead(rpc::Client& client,
                                                        const std::string& name, int64_t version,
                                                        Progress& progress, int fd,
                                                        const std::string& path);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_HEAD_COPY_H_
