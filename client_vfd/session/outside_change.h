// What a program without the driver has changed of a local file, found by digests: only these
// cross the network.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_OUTSIDE_CHANGE_H_
#define H5MIRROR_CLIENT_VFD_SESSION_OUTSIDE_CHANGE_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client_vfd/session/file_reader.h"
#include "client_vfd/session/state/cut_queue.h"
#include "h5mirror/v1/files.pb.h"
#include "h5mirror/v1/types.pb.h"
#include "rpc/digest_blocks.h"

namespace h5mirror::vfd {

struct OutsideChange {
  // What the server lacks, on top of the cut that the file was compared with.
  Changes changes;
  // Only the file's times have changed.
  bool is_none = false;
};

// Files.DigestFile. Returns the version that was digested.
using AskDigests =
    absl::FunctionRef<absl::StatusOr<v1::Version>(const v1::DigestFileRequest&, rpc::DigestSink)>;

// Compares `file` with the newest version of `name`: blocks of 1 MiB, then blocks of 4 KiB of those
// that differ. Once `is_late`, no more of the file is read, and the rest counts as changed.
// Errors: kFailedPrecondition that version is not of the cut `cut`; those of `ask`; the disk's.
absl::StatusOr<OutsideChange> FindOutsideChange(const std::string& name, int64_t cut,
                                                const FileReader& file, AskDigests ask,
                                                absl::FunctionRef<bool()> is_late);

// Where it cannot be compared: all of the file.
OutsideChange WholeFile(const FileReader& file);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_OUTSIDE_CHANGE_H_
