// The answer of a server of a cluster that another one serves the file (docs/design/049-cells.md,
// "Redirects").
#ifndef H5MIRROR_RPC_ELSEWHERE_H_
#define H5MIRROR_RPC_ELSEWHERE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace h5mirror::rpc {

struct Elsewhere {
  std::string address;  // of the server that serves it, for clients
  std::string cell;     // the directory that it serves; empty: the root
  uint64_t epoch = 0;   // rises with each change of the cell's server

  bool operator==(const Elsewhere&) const = default;
};

// kUnavailable, whose message names the address, with `elsewhere` as its payload.
absl::Status ElsewhereError(const Elsewhere& elsewhere);

// kUnavailable with `text`: no server of the cluster serves the file's cell at the moment. The
// answering server itself is alive.
absl::Status NobodyServesError(std::string_view text);
bool IsNobodyServes(const absl::Status& status);

// For a call whose work is done: `status` without the payload that sends a client to another
// server.
absl::Status WithoutElsewhere(const absl::Status& status);

// Marks kNotFound as the answer of the server that serves the file's cell: it has looked, and may
// answer. An unmarked kNotFound may come from any server that gives the caller no right to the
// name.
absl::Status OwnerLacksIt(absl::Status status, std::string_view cell, uint64_t epoch);
bool IsOwnerLacksIt(const absl::Status& status);

// Nullopt: `status` names no other server.
std::optional<Elsewhere> ElsewhereOf(const absl::Status& status);

// For rpc/status.h: the details of a gRPC status that carry the payload, and back. Bytes of others
// are ignored.
std::string DetailsOf(const absl::Status& status);
void TakeDetails(const std::string& details, absl::Status& status);

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_ELSEWHERE_H_
