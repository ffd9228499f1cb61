// What `h5mirror cluster status` says of a cluster: words, and what is wrong with it.
#ifndef H5MIRROR_CLI_VERBS_CLUSTER_REPORT_H_
#define H5MIRROR_CLI_VERBS_CLUSTER_REPORT_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output/json.h"
#include "h5mirror/v1/cluster.pb.h"

namespace h5mirror::tools {

// The directory of a cell as a person types it: "bl7" of "bl7/"; empty, the root, of "/".
std::string CellOfArgument(std::string_view typed);

// "bl7"; "(the root)" of the empty name.
std::string NameOfCell(const std::string& directory);

// "up" of SERVER_STATE_UP.
std::string WordOf(v1::ServerState state);
std::string WordOf(v1::CellState state);

// Whether it was neither given up nor has ended.
bool IsAlive(const v1::ClusterServer& server);

// By the ID of a server: the cells that it has, whatever their state.
std::map<std::string, int> CellCounts(const v1::GetClusterResponse& view);

// The server that has a cell; empty: the cell is free.
std::string ServerOf(const v1::ClusterCell& cell);

// One sentence for each thing that keeps clients from files, or may do so. Empty: all is well.
std::vector<std::string> ProblemsOf(const v1::GetClusterResponse& view);

// The address of a server that is up and is not `id`; empty: there is none.
std::string AddressOfAnother(const v1::GetClusterResponse& view, const std::string& id);

// The document of `cluster status --json` (h5mirror(1), JSON).
Json ToJson(const v1::GetClusterResponse& view, const std::vector<std::string>& problems);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_VERBS_CLUSTER_REPORT_H_
