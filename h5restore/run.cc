#include "h5restore/run.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "H5FDh5mirror.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5restore/open_files.h"
#include "h5restore/paths.h"
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
  if (left == Left::kTorn) {
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
  if (job.makes_target && !job.dry_run) unlink(job.target.path.c_str());
  if (closed.ok()) return why;
  return absl::Status(why.code(), StrCat(why.message(), "; ", closed.message()));
}

// Attributes need an object to be of.
absl::Status MakeHolder(hid_t file, const std::string& path) {
  if (path == "/") return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const Handle links, LinkProperties(H5T_CSET_UTF8));
  return hdf5::Own(H5Gcreate2(file, path.c_str(), links.get(), H5P_DEFAULT, H5P_DEFAULT), path)
      .status();
}

// The object, with stand-ins for what its references and types lead to, in a file of its own.
// `kind` is the object's: of attributes only the holder is there.
absl::StatusOr<Handle> Take(const RestoreJob& job, std::string* kind) {
  H5M_ASSIGN_OR_RETURN(const Handle source, OpenFile(job.source, Access::kRead));
  H5M_ASSIGN_OR_RETURN(Handle scratch, OpenScratch());
  RestoreJob take = job;
  take.as = job.path;
  take.replaces = false;
  const Ends ends{source.get(), job.source.said, scratch.get(), "a scratch file", Missing::kStand};
  if (!job.attributes.empty()) H5M_RETURN_IF_ERROR(MakeHolder(scratch.get(), job.path));
  Left left = Left::kUntouched;
  H5M_ASSIGN_OR_RETURN(const RestoreResult taken, Restore(ends, take, &left));
  *kind = taken.kind;
  return scratch;
}

absl::StatusOr<RestoreResult> RestoreFrom(hid_t source, const RestoreJob& job) {
  const Access access = job.dry_run        ? Access::kRead
                        : job.makes_target ? Access::kMake
                                           : Access::kChange;
  // A new file that a dry run does not make is empty.
  H5M_ASSIGN_OR_RETURN(Handle target, job.dry_run && job.makes_target
                                          ? OpenScratch()
                                          : OpenFile(job.target, access));
  const Ends ends{source, job.source.said, target.get(), job.target.said, Missing::kNull};
  Left left = Left::kUntouched;
  absl::StatusOr<RestoreResult> result = Restore(ends, job, &left);
  if (!result.ok()) return CloseAsItWas(std::move(target), job, left, result.status());
  H5M_RETURN_IF_ERROR(CloseFile(std::move(target), job.target.said));
  return result;
}

}  // namespace

absl::StatusOr<RestoreResult> RunJob(const RestoreJob& job) {
  H5M_RETURN_IF_ERROR(hdf5::StartLibrary());
  H5M_RETURN_IF_ERROR(Check(H5PLprepend(job.plugin_dir.c_str()), "look for the driver"));
  if (job.through_scratch && !job.dry_run) {
    std::string kind;
    H5M_ASSIGN_OR_RETURN(const Handle scratch, Take(job, &kind));
    H5M_ASSIGN_OR_RETURN(RestoreResult result, RestoreFrom(scratch.get(), job));
    result.kind = kind;
    return result;
  }
  H5M_ASSIGN_OR_RETURN(const Handle source, OpenFile(job.source, Access::kRead));
  return RestoreFrom(source.get(), job);
}

}  // namespace h5mirror::restore
