// Renames that happen together or not at all: docs/design/033-moving-and-removing.md.
#ifndef H5MIRROR_ONION_STORE_STORE_RELOCATION_H_
#define H5MIRROR_ONION_STORE_STORE_RELOCATION_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/env.h"

namespace h5mirror::store {

// Names are relative to the root, without a leading or trailing '/'.
struct Renaming {
  std::string from;
  std::string to;
  bool operator==(const Renaming&) const = default;
};

struct Relocation {
  std::string id;                 // of its journal
  std::vector<Renaming> renames;  // in this order
};

// Writes the journal of `relocation`: from then on the renames will happen, also after a crash.
// The directories above the targets must exist.
absl::Status BeginRelocation(EnvTree& tree, const Relocation& relocation);

// Does the renames that are not done yet and forgets the journal, durably. Harmless to repeat.
// Errors: kAlreadyExists  both ends of a rename exist, and are two files (the message names them).
//                         Nothing is lost.
absl::Status FinishRelocation(EnvTree& tree, const Relocation& relocation);

// The journals that a crash or an error left, in the order of their ids. Half-written journals are
// removed. kDataLoss: a journal does not parse.
absl::StatusOr<std::vector<Relocation>> UnfinishedRelocations(EnvTree& tree);

// The directory that holds `name`; "" is the root.
std::string ParentOf(std::string_view name);

// Reads a small file whole. kDataLoss: it exceeds 1 MiB.
absl::StatusOr<std::string> ReadSmallFile(EnvTree& tree, const std::string& name);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_STORE_RELOCATION_H_
