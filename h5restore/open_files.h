// The two files of a restore, as the driver opens them.
#ifndef H5MIRROR_H5RESTORE_OPEN_FILES_H_
#define H5MIRROR_H5RESTORE_OPEN_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/restore/restore_job.h"
#include "hdf5/handle.h"

namespace h5mirror::restore {

enum class Access { kRead, kChange, kMake };

// Errors: kFailedPrecondition another program has it; kInternal the error of HDF5 and the driver.
absl::StatusOr<hdf5::Handle> OpenFile(const tools::FileToOpen& file, Access access);

// Closes it, with all that is open in it. The error is that of the close, which brings what was
// changed to the file and its mirror.
absl::Status CloseFile(hdf5::Handle file, const std::string& said);

// An empty file that is in memory only.
absl::StatusOr<hdf5::Handle> OpenScratch();

}  // namespace h5mirror::restore

#endif  // H5MIRROR_H5RESTORE_OPEN_FILES_H_
