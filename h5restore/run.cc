#include "h5restore/run.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "H5FDh5mirror.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5restore/open_files.h"
#include "h5restore/restore.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {
namespace {

using hdf5::Check;
using hdf5::Handle;
using tools::RestoreJob;
using tools::RestoreResult;

absl::StatusOr<RestoreResult> Restore(const Ends& ends, const RestoreJob& job, Left* left) {
  return job.attributes.empty() ? RestoreObject(ends, job, left)
                                : RestoreAttributes(ends, job, left);
}

// What the file keeps in memory must not come to the disk. Its driver's buffers end with the
// process, as after a kill. `status` is told before.
[[noreturn]] void EndWithoutFlush(const absl::Status& status) {
  std::cout << tools::kResultLine << tools::EncodeResult(status) << std::endl;
  _exit(1);
}

// After an error: the target as it was.
absl::Status CloseAsItWas(Handle target, const RestoreJob& job, Left left, absl::Status why) {
  const bool removes = job.makes_target && !job.dry_run;
  if (left == Left::kTorn) {
    if (removes) unlink(job.target.path.c_str());
    EndWithoutFlush(absl::Status(
        why.code(), StrCat(why.message(), "; ", job.target.said, " was left as it was before")));
  }
  if (left == Left::kTakenBack) {
    // Its objects are what they were, but not all of its bytes: a version must say why.
    H5FDh5mirror_commit(target.get(),
                        StrCat("restore of ", job.as, " failed, and was taken back").c_str());
    H5Eclear2(H5E_DEFAULT);
  }
  const absl::Status closed = CloseFile(std::move(target), job.target.said);
  if (removes) unlink(job.target.path.c_str());
  if (closed.ok()) return why;
  return absl::Status(why.code(), StrCat(why.message(), "; ", closed.message()));
}

// A new file that a dry run does not make is empty.
absl::StatusOr<Handle> OpenTarget(const RestoreJob& job) {
  if (job.dry_run && job.makes_target) return OpenScratch();
  return OpenFile(job.target, job.dry_run        ? Access::kRead
                              : job.makes_target ? Access::kMake
                                                 : Access::kChange);
}

absl::StatusOr<RestoreResult> RestoreInto(hid_t target, const RestoreJob& job, Left* left) {
  H5M_ASSIGN_OR_RETURN(const Handle source, OpenFile(job.source, Access::kRead));
  return Restore({source.get(), job.source.said, target, job.target.said}, job, left);
}

}  // namespace

absl::StatusOr<RestoreResult> RunJob(const RestoreJob& job) {
  H5M_RETURN_IF_ERROR(hdf5::StartLibrary());
  H5M_RETURN_IF_ERROR(Check(H5PLprepend(job.plugin_dir.c_str()), "look for the driver"));
  // First: a history beside the file is read through the store of its writer, if this process is
  // that. The other way round, the reader would be in the writer's way.
  H5M_ASSIGN_OR_RETURN(Handle target, OpenTarget(job));
  Left left = Left::kUntouched;
  absl::StatusOr<RestoreResult> result = RestoreInto(target.get(), job, &left);
  if (!result.ok()) return CloseAsItWas(std::move(target), job, left, result.status());
  H5M_RETURN_IF_ERROR(CloseFile(std::move(target), job.target.said));
  return result;
}

}  // namespace h5mirror::restore
