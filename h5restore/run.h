// One job of the CLI.
#ifndef H5MIRROR_H5RESTORE_RUN_H_
#define H5MIRROR_H5RESTORE_RUN_H_

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "cli/restore/restore_job.h"

namespace h5mirror::restore {

// Calls `before_close` before the target's last flush, which must not be broken off.
// Errors: those of RestoreObject(), RestoreAttributes() and OpenFile(). The target is as it was
// then, unless the message says otherwise.
absl::StatusOr<tools::RestoreResult> RunJob(const tools::RestoreJob& job,
                                            absl::FunctionRef<void()> before_close);

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_RUN_H_
