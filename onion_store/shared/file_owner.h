// The owner of a file: the verified caller whose session made it. In a file's history an empty
// file "owner-unix:anna" names it (docs/reference/format.md). So one directory tells whether a file
// exists, and whose it is. The owner's name comes before the index, and the same sync makes both
// names durable: a file that exists has the owner that it was made with.
#ifndef H5MIRROR_ONION_STORE_SHARED_FILE_OWNER_H_
#define H5MIRROR_ONION_STORE_SHARED_FILE_OWNER_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/env.h"
#include "onion_store/store.h"

namespace h5mirror::store {

// Whether an entry of a history names an owner.
bool IsOwnerEntry(std::string_view entry);

// The owner that the entries of a history name; empty: none, or several, so that the owner is
// unknown.
std::string OwnerIn(absl::Span<const DirectoryEntry> entries);

// Names the owner in a history that has no index yet. Durable with the next sync of `directory`.
// Does nothing if `owner` is empty.
absl::Status NameOwner(EnvTree& tree, const std::string& directory, std::string_view owner);

// Makes `owner` (empty: nobody) the owner. Durable when it returns. After a crash the owner is the
// former one or this.
absl::Status ChangeOwner(EnvTree& tree, const std::string& directory, std::string_view owner);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_FILE_OWNER_H_
