// Finds the changes of a program without the driver to a local file. Only digests cross the
// network.
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
  // The changes on top of the cut that the file was compared with.
  Changes changes;
  // True: only the file's times have changed.
  bool is_none = false;
  // True: nothing has changed but the user block, the bytes before the superblock. HDF5 never
  // writes these, so a program that has one writes it by open(), as MATLAB's files need.
  bool is_user_block = false;
};

// Files.DigestFile. Returns the version that was digested.
using AskDigests =
    absl::FunctionRef<absl::StatusOr<v1::Version>(const v1::DigestFileRequest&, rpc::DigestSink)>;

// Compares `file` with the newest version of `name`. First it compares blocks of 1 MiB, then blocks
// of 4 KiB within those that differ. Where a user block ends within one, it compares blocks of 512
// bytes. Once `is_late` is true, the rest of the file counts as changed unread.
//
// Errors: kFailedPrecondition  the newest version was not made from the cut `cut`.
//         Those of `ask`, and of reading the file.
absl::StatusOr<OutsideChange> FindOutsideChange(const std::string& name, int64_t cut,
                                                const FileReader& file, AskDigests ask,
                                                absl::FunctionRef<bool()> is_late);

// All of the file as a change, where it cannot be compared.
OutsideChange WholeFile(const FileReader& file);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_OUTSIDE_CHANGE_H_
