// The servers that have the files below a directory, where a cluster serves it.
#ifndef H5MIRROR_CLI_VERBS_CELLS_BELOW_H_
#define H5MIRROR_CLI_VERBS_CELLS_BELOW_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/context/context.h"
#include "rpc/cluster_calls.h"

namespace h5mirror::tools {

// A directory that one server lists as a whole.
struct ServedDirectory {
  std::string directory;
  std::string address;  // of its server; empty: nobody serves it at the moment
  bool is_here = true;  // the server of Context::Options() serves it

  // The address to connect to; empty: that of Context::Options(). Only for a directory that some
  // server serves.
  std::string server() const { return is_here ? "" : address; }
};

// kUnavailable or kDeadlineExceeded: files of a cell may be there, and cannot be told.
bool IsAway(const absl::Status& status);

// Of such a status: with the name of its cell.
absl::Status NameCell(const ServedDirectory& place, const absl::Status& status);

// `directory`, where one server has all of it; else the cells in it, in the order of their
// files' names. Of a cluster that does not know its cells yet: kUnavailable.
absl::StatusOr<std::vector<ServedDirectory>> CellsBelow(Context& context,
                                                        const std::string& directory);

// Connections to the servers of a cluster that it has named itself. Not thread-safe.
class ClusterDoor {
 public:
  // `context` must outlive this.
  explicit ClusterDoor(Context& context) : context_(context) {}

  // To the server of `place`; owned by this or by the context.
  // Errors: kUnavailable         nobody serves it at the moment, or there is no connection;
  //         kFailedPrecondition  a token would go there as plain text: nothing was sent.
  // A server that did not answer is not asked again; its first error is returned for all of its
  // cells.
  absl::StatusOr<rpc::Client*> Connect(const ServedDirectory& place);
  // The server of `place` has not answered a call in time.
  void NoteLost(const ServedDirectory& place, const absl::Status& status);

 private:
  absl::StatusOr<rpc::Client*> ConnectOnce(const ServedDirectory& place);

  Context& context_;
  std::map<std::string, absl::Status> lost_;                     // as clients_
  std::map<std::string, std::unique_ptr<rpc::Client>> clients_;  // by ServedDirectory::server()
};

// For calls about the cluster of the server of Context::Options(). Made anew by each call.
absl::StatusOr<std::unique_ptr<rpc::ClusterCalls>> ConnectCluster(const Context& context);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_CELLS_BELOW_H_
