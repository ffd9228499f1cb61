#include "sync/closed_record.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "base/dirty_map.h"
#include "base/errno_status.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/process/io.h"

namespace h5mirror::tools {
namespace {

// An SWMR writer holds no lock. But the kernel grants a lease only if nobody else has the file
// open. If another program opens it in that moment, the kernel sends a signal: SIGURG, because the
// default SIGIO would end this process.
bool IsOpenElsewhere(int fd) {
  fcntl(fd, F_SETSIG, SIGURG);
  const bool granted = fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
  if (granted) fcntl(fd, F_SETLEASE, F_UNLCK);
  return !granted && errno == EAGAIN;
}

}  // namespace

absl::StatusOr<FileStat> CloseInPlace(const LocalFile& file, const SuperblockPatch& patch) {
  const std::string path = file.path().string();
  // Without the right to write, the lock was taken on a descriptor that only reads.
  if ((fcntl(file.fd(), F_GETFL) & O_ACCMODE) != O_RDWR) {
    return absl::PermissionDeniedError(
        StrCat(path,
               ": it has the superblock of a file that a writer has open, and may not be "
               "written; give yourself the right to (chmod u+w), then run this again"));
  }
  if (IsOpenElsewhere(file.fd())) {
    return absl::FailedPreconditionError(
        StrCat(path, ": somebody has it open, maybe its SWMR writer; close it there first (fuser ",
               path, " names it)"));
  }
  H5M_RETURN_IF_ERROR(file.CheckUnchanged());
  H5M_RETURN_IF_ERROR(PwriteAll(file.fd(), patch.offset, patch.bytes, path));
  if (fsync(file.fd()) != 0) return ErrnoToStatus(errno, StrCat("sync ", path));
  return StatDescriptor(file.fd());
}

absl::Status WriteClosedRecord(const RecordPlace& place, LocalRecord record,
                               const SuperblockPatch& patch) {
  record.state = RecordState::kBehind;
  record.detail = "made as its mirror, with the superblock of a closed file";
  // A record first: it makes the directory.
  H5M_RETURN_IF_ERROR(WriteLocalRecord(place, record));
  DirtyMap map;
  map.id = RandomBytes16();
  map.file_id = record.file_id;
  map.claim = DirtyMap::Claim::kContinue;
  map.base_cut = record.cut;
  map.stat = record.stat;
  map.extents.Add(patch.extent());
  H5M_RETURN_IF_ERROR(WriteDirtyMap(place, map));
  record.dirty_map_id = map.id;
  return WriteLocalRecord(place, record);
}

}  // namespace h5mirror::tools
