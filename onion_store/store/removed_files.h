// Files that were removed and can be brought back: docs/design/033-moving-and-removing.md.
#ifndef H5MIRROR_ONION_STORE_STORE_REMOVED_FILES_H_
#define H5MIRROR_ONION_STORE_STORE_REMOVED_FILES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "onion_store/store.h"

namespace h5mirror::store {

// Where the parts of a removed file lie.
std::string RemovedHead(std::string_view id);
std::string RemovedHistory(std::string_view id);

// "20261103T140000Z-07fc": sorts by time, and is never given twice.
std::string NewRemovalId(absl::Time now);

// Whether `id` may be one: it becomes a part of a path.
absl::Status CheckRemovalId(std::string_view id);

// Makes the place for a removed file, durably. Without a history in it, it counts for nothing.
absl::Status PutRemovedInfo(EnvTree& tree, const RemovedFile& removed);

// kNotFound: no such removal, or one that is not whole. kDataLoss: what is known of it does not
// parse.
absl::StatusOr<RemovedFile> GetRemoved(EnvTree& tree, std::string_view id);

// Newest first. One that does not parse is left out, and reported by GetRemoved().
absl::StatusOr<std::vector<RemovedFile>> ListRemovedFiles(EnvTree& tree);

// Forgets a removal whose file was brought back.
absl::Status DropRemovedInfo(EnvTree& tree, std::string_view id);

// Removes the file for good.
absl::Status EraseRemoved(EnvTree& tree, std::string_view id);

// Goes on with what a crash left of the above. Relocations are finished before.
absl::Status SweepRemoved(EnvTree& tree);

// The size of a file, and of all files below a directory, holes too; what cannot be seen counts
// nothing.
uint64_t BytesOf(EnvTree& tree, const std::string& name);
uint64_t BytesBelow(EnvTree& tree, const std::string& directory);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STORE_REMOVED_FILES_H_
