// Operators' requests to a cluster, as texts of its registry. Its servers read them once in a beat
// (docs/design/049-cells.md, "Wishes").
#ifndef H5MIRROR_CLUSTER_WISHES_H_
#define H5MIRROR_CLUSTER_WISHES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cluster/records.h"
#include "cluster/registry.h"

namespace h5mirror::cluster {

// The whole registry, decoded. Errors: those of Registry; kDataLoss.
absl::StatusOr<ClusterView> ReadCluster(Registry& registry);

// Asks for `cell` to be handed over to the server `to`. Returns the cell's epoch, which rises when
// `to` has taken the cell. 0: the cell is there already, and no earlier request moves it away.
// Errors: kNotFound no such cell or server; the message names those that there are.
//         kFailedPrecondition  the server is not up, or nobody serves the cell at the moment.
//         kUnavailable         unknown; may be repeated.
absl::StatusOr<uint64_t> AskToMove(Registry& registry, const std::string& cell,
                                   const std::string& to);

// Asks a server to hand its cells over, or to take cells again.
// Errors: kNotFound            no such server; the message names those that there are.
//         kFailedPrecondition  it is neither up nor draining; or no other one is up that nobody
//                              wants to drain, and so nobody could take its cells.
//         kUnavailable         unknown; may be repeated.
absl::Status AskToDrain(Registry& registry, const std::string& id, DrainWish wish);

// The record of a server. kNotFound names those that there are.
absl::StatusOr<ServerRecord> ServerOf(const ClusterView& view, const std::string& id);

// "up", "draining", "gone", "dead", "fenced".
std::string NameOf(ServerState state);

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_WISHES_H_
