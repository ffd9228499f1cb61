// A temporary file of a history: sorted indexes, pinned pages, checksums that are not in sums yet.
#ifndef H5MIRROR_ONION_STORE_DISK_NAMELESS_FILE_H_
#define H5MIRROR_ONION_STORE_DISK_NAMELESS_FILE_H_

#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/env.h"

namespace h5mirror::store {

// Makes a file that no other process can open, and that ends with its last holder. For a moment it
// is `directory`/run-N. A recovery removes such a file that a crash left
// (docs/reference/format.md).
absl::StatusOr<std::unique_ptr<EnvFile>> OpenNameless(EnvTree& tree, std::string_view directory);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_DISK_NAMELESS_FILE_H_
