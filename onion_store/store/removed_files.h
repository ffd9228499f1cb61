// Files that were removed and can be undeleted: docs/design/033-moving-and-removing.md.
#ifndef H5MIRROR_ONION_STORE_STORE_REMOVED_FILES_H_
#define H5MIRROR_ONION_STORE_STORE_REMOVED_FILES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "onion_store/store.h"

namespace h5mirror::store {

// The paths of the parts of a removed file.
std::string RemovedHead(std::string_view id);
std::string RemovedHistory(std::string_view id);

// "20261103T140000Z-07fc": sorts by time, and is never given twice.
std::string NewRemovalId(absl::Time now);

// OK: `id` has the form of a removal's id, and may be a part of a path.
absl::Status CheckRemovalId(std::string_view id);

// Makes the directory of a removed file, durably. Without a history in it the directory does not
// count.
absl::Status PutRemovedInfo(EnvTree& tree, const RemovedFile& removed);

// kNotFound: no such removal, or one that is not whole. kDataLoss: its `info` does not parse.
absl::StatusOr<RemovedFile> GetRemoved(EnvTree& tree, std::string_view id);

// Newest first. A removal whose `info` does not parse is left out; GetRemoved() reports it.
absl::StatusOr<std::vector<RemovedFile>> ListRemovedFiles(EnvTree& tree);

// Forgets a removal whose file was undeleted.
absl::Status DropRemovedInfo(EnvTree& tree, std::string_view id);

// Begins to delete the removed file, for good: renames it to a place that it returns.
absl::StatusOr<std::string> SetGone(EnvTree& tree, std::string_view id);
// Deletes the file at such a place.
absl::Status EraseGone(EnvTree& tree, const std::string& place);
// The places that still have files.
absl::StatusOr<std::vector<std::string>> ListGone(EnvTree& tree);
// The history of a removed file at such a place.
std::string HistoryIn(std::string_view place);

// Finishes removals that a crash has stopped. Relocations must be finished before.
absl::Status SweepRemoved(EnvTree& tree);

// The size of a file, or of all files below a directory, holes included. An unreadable entry counts
// 0.
uint64_t BytesOf(EnvTree& tree, const std::string& name);
uint64_t BytesBelow(EnvTree& tree, const std::string& directory);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STORE_REMOVED_FILES_H_
