// Where the data files lie, and what the kernel does with them.
#ifndef H5MIRROR_H5PERF_SERIAL_DATA_FILE_H_
#define H5MIRROR_H5PERF_SERIAL_DATA_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace h5mirror::perf {

// "#sio_tmp" in the current directory, or below HDF5_PREFIX: in its subdirectory $USER (or $LOGIN),
// which is made, or in the prefix itself where that cannot be.
std::string DataFileBase();
// The same of another name, and of another variable.
std::string BelowPrefix(const char* name, const char* variable);

// HDF5_PREFIX (or the variable named), or "not set".
std::string PrefixText(const char* variable = "HDF5_PREFIX");

// HDF5_NOCLEANUP is set, to whatever value.
bool KeepsFiles();

absl::Status SyncFiles(const std::vector<std::string>& files);

enum class Dropped { kEverything, kDataFiles };

// Syncs, and empties the page cache: the machine's where that is permitted, else it asks the kernel
// to forget `files`.
Dropped DropCaches(const std::vector<std::string>& files);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_DATA_FILE_H_
