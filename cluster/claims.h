// Which server may claim a cell, and in which order they try (docs/design/049-cells.md, step 5).
// Pure, but for CreateCell().
#ifndef H5MIRROR_CLUSTER_CLAIMS_H_
#define H5MIRROR_CLUSTER_CLAIMS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "cluster/records.h"
#include "cluster/registry.h"

namespace h5mirror::cluster {

// True: the cell is free, or the life of its owner is over. A cell whose owner has no record cannot
// be claimed, because there is nothing to fence.
bool IsClaimable(const ClusterView& view, const CellRecord& record);

// The record of a claim of a cell that was `before`.
CellRecord Claimed(const CellRecord& before, const std::string& owner, uint64_t owner_epoch);

// Rendezvous hashing: each cell has an order of servers of its own, and a server that comes or goes
// moves only its own cells. The same in each release and on each machine.
uint64_t WeightOf(std::string_view cell, std::string_view id);

// How many servers that are up come before `id` for `cell`.
size_t PlaceOf(const std::string& cell, const std::string& id, const ClusterView& view);

// Makes a free cell of a directory. The servers find it at their next look.
// Errors: kInvalidArgument  it cannot be a cell.
//         kAlreadyExists    it is one.
//         kFailedPrecondition  it lies in a cell, or a cell lies in it: two stores would find the
//                              files of the inner one. Of two servers that make such a pair at
//                              once, both may succeed; CheckApart() finds it.
//         kUnavailable      unknown; may be repeated.
absl::Status CreateCell(Registry& registry, const std::string& cell);

// True: the two are the same cell, or one lies in the other.
bool Overlap(std::string_view cell, std::string_view other);
// kFailedPrecondition names a cell of `view` that overlaps with `cell`, another one.
absl::Status CheckApart(const ClusterView& view, const std::string& cell);

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_CLAIMS_H_
