// A local file that is a version of its mirror, but for the superblock of a closed file
// (sync/closed_copy.h).
#ifndef H5MIRROR_SYNC_CLOSED_RECORD_H_
#define H5MIRROR_SYNC_CLOSED_RECORD_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/local_record.h"
#include "sync/closed_copy.h"
#include "sync/local_file.h"

namespace h5mirror::tools {

// Writes `patch` into `file`, which must be locked exclusively, and syncs it. Returns the
// file's new state. The patch lies within one sector: after a kill all of it is there, or none.
// Errors: kFailedPrecondition somebody else has the file open, as far as the kernel can tell;
//         kAborted            it changed since it was opened;
//         kPermissionDenied   it may not be written.
absl::StatusOr<FileStat> CloseInPlace(const LocalFile& file, const SuperblockPatch& patch);

// `record` says that the file equals the cut that it names. Writes it as the record of a file whose
// `patch` the server lacks. The next open or resync of the file sends the patch.
absl::Status WriteClosedRecord(const RecordPlace& place, LocalRecord record,
                               const SuperblockPatch& patch);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_SYNC_CLOSED_RECORD_H_
