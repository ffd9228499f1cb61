#include "h5restore/run.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <utility>

#include "H5FDh5mirror.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/errno_status.h"
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

// For the server's answer to the first change.
constexpr absl::Duration kAnswerWait = absl::Seconds(15);
constexpr absl::Duration kPause = absl::Milliseconds(10);

// Ends without a flush: the file's bytes in memory must not reach the disk. The driver's buffers go
// with the process, as after a kill. `status` is told before.
[[noreturn]] void EndWithoutFlush(const absl::Status& status) {
  std::cout << tools::kResultLine << tools::EncodeResult(status) << std::endl;
  _exit(1);
}

[[noreturn]] void EndTorn(const RestoreJob& job, const absl::Status& why) {
  if (job.makes_target) unlink(job.target.path.c_str());
  const std::string_view then =
      job.is_mirrored ? " has the objects that it had; before the next change: h5mirror recover "
                      : " was left as it was before";
  EndWithoutFlush(absl::Status(why.code(), StrCat(why.message(), "; ", job.target.said, then,
                                                  job.is_mirrored ? job.target.said : "")));
}

// After an error: the target as it was.
absl::Status CloseAsItWas(Handle target, const RestoreJob& job, Left left, absl::Status why) {
  if (left == Left::kTorn) EndTorn(job, why);
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

// The driver finds at the first byte that changes whether file and mirror are equal.
absl::Status CheckMirrors(hid_t target, const RestoreJob& job) {
  H5FDh5mirror_status_t status{};
  const absl::Time deadline = absl::Now() + kAnswerWait;
  do {
    if (H5FDh5mirror_status(target, &status) < 0) return absl::OkStatus();  // of no mirror
    if (status.state != H5FD_H5MIRROR_CONNECTING) break;
    absl::SleepFor(kPause);
  } while (absl::Now() < deadline);
  if (status.state != H5FD_H5MIRROR_DIVERGED) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat(job.target.said, " and its mirror have diverged: ", status.message));
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

// A new file gets its name when it is whole.
absl::Status NameNewFile(const RestoreJob& job) {
  const char* const from = job.target.path.c_str();
  int failed = renameat2(AT_FDCWD, from, AT_FDCWD, job.becomes.c_str(), RENAME_NOREPLACE);
  if (failed != 0 && errno == EINVAL) {  // A file system that cannot.
    errno = EEXIST;
    failed = access(job.becomes.c_str(), F_OK) == 0 ? -1 : rename(from, job.becomes.c_str());
  }
  if (failed == 0) return absl::OkStatus();
  const absl::Status status = ErrnoToStatus(errno, StrCat("make ", job.becomes));
  unlink(from);
  return status;
}

}  // namespace

absl::StatusOr<RestoreResult> RunJob(const RestoreJob& job,
                                     absl::FunctionRef<void()> before_close) {
  H5M_RETURN_IF_ERROR(hdf5::StartLibrary());
  H5M_RETURN_IF_ERROR(Check(H5PLprepend(job.plugin_dir.c_str()), "look for the driver"));
  // First: a history beside the file is read through the store of its writer, if this process is
  // that. The other way round, the reader would be in the writer's way.
  H5M_ASSIGN_OR_RETURN(Handle target, OpenTarget(job));
  Left left = Left::kUntouched;
  absl::StatusOr<RestoreResult> result = RestoreInto(target.get(), job, &left);
  const bool changes = result.ok() && !job.dry_run;
  if (changes && job.is_mirrored) {
    if (const absl::Status level = CheckMirrors(target.get(), job); !level.ok()) {
      result = level;
      left = Left::kTorn;
    }
  }
  before_close();
  if (!result.ok()) return CloseAsItWas(std::move(target), job, left, result.status());
  H5M_RETURN_IF_ERROR(CloseFile(std::move(target), job.target.said));
  if (changes && job.makes_target) H5M_RETURN_IF_ERROR(NameNewFile(job));
  return result;
}

}  // namespace h5mirror::restore
