// h5mirrord restore-root: rebuilds a root that was lost from its archive. For operators:
// docs/how-to/restore-a-root.md.
#ifndef H5MIRROR_SERVER_RESTORE_ROOT_VERB_H_
#define H5MIRROR_SERVER_RESTORE_ROOT_VERB_H_

#include "server/flags.h"

namespace h5mirror::server {

// Prints the restored files, or with --dry-run those that would be, to standard output, and the
// progress to standard error. kFailed: a file could not be rebuilt, or the archive does not answer;
// the same command goes on. kNoRoot, kRootReadOnly, kRootInUse: of the new root, which must be
// empty.
ExitCode RestoreRoot(const RestoreRootRequest& request);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_RESTORE_ROOT_VERB_H_
