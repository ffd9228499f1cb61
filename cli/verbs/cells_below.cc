#include "cli/verbs/cells_below.h"

#include <algorithm>

#include "base/status_macros.h"
#include "base/strings.h"
#include "rpc/server_address.h"

namespace h5mirror::tools {

absl::StatusOr<std::vector<ServedDirectory>> CellsBelow(Context& context,
                                                        const std::string& directory) {
  H5M_ASSIGN_OR_RETURN(const auto calls, ConnectCluster(context));
  v1::ListCellsRequest request;
  request.set_directory(directory);
  const auto listed = calls->ListCells(request);
  // A server of a release before clusters, or of none.
  const bool is_alone =
      absl::IsUnimplemented(listed.status()) || (listed.ok() && listed->cells().empty());
  if (is_alone) return std::vector<ServedDirectory>{{directory, "", true}};
  H5M_RETURN_IF_ERROR(listed.status());
  std::vector<ServedDirectory> places;
  for (const v1::ServedCell& cell : listed->cells()) {
    // The cell that the directory lies in has more than it.
    const bool is_within = directory.size() > cell.directory().size();
    places.push_back({is_within ? directory : cell.directory(), cell.address(), cell.is_here()});
  }
  // "a-b/f.h5" comes before "a/f.h5", as in the list of one server.
  std::sort(places.begin(), places.end(),
            [](const auto& a, const auto& b) { return a.directory + "/" < b.directory + "/"; });
  return places;
}

absl::StatusOr<std::unique_ptr<rpc::ClusterCalls>> ConnectCluster(const Context& context) {
  H5M_ASSIGN_OR_RETURN(const rpc::ClientOptions options, context.Options());
  return rpc::ClusterCalls::Connect(options, absl::Seconds(context.flags().timeout_seconds),
                                    absl::Seconds(context.flags().refused_seconds));
}

bool IsAway(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

absl::Status NameCell(const ServedDirectory& place, const absl::Status& status) {
  if (!IsAway(status) || place.directory.empty()) return status;
  return {status.code(), StrCat(place.directory, ": ", ToStd(status.message()))};
}

absl::StatusOr<rpc::Client*> ClusterDoor::Connect(const ServedDirectory& place) {
  if (!place.is_here && place.address.empty()) {
    return absl::UnavailableError("no server serves it at the moment");
  }
  if (const auto lost = lost_.find(place.server()); lost != lost_.end()) return lost->second;
  absl::StatusOr<rpc::Client*> client = ConnectOnce(place);
  if (IsAway(client.status())) NoteLost(place, client.status());
  return client;
}

void ClusterDoor::NoteLost(const ServedDirectory& place, const absl::Status& status) {
  lost_.emplace(place.server(), status);
}

absl::StatusOr<rpc::Client*> ClusterDoor::ConnectOnce(const ServedDirectory& place) {
  if (place.is_here) return context_.Connect();
  std::unique_ptr<rpc::Client>& client = clients_[place.address];
  if (client != nullptr) return client.get();
  H5M_ASSIGN_OR_RETURN(rpc::ClientOptions options, context_.Options());
  H5M_ASSIGN_OR_RETURN(const rpc::ServerAddress named, rpc::ParseServerAddress(place.address));
  const bool shows_token = !options.token.empty() || !options.token_source.empty();
  if (shows_token && options.ca_pem.empty() && !named.loopback) {
    return absl::FailedPreconditionError(
        StrCat(options.server, " names ", place.address,
               ", another server of its cluster: the token is not sent there without TLS"));
  }
  options.origin = StrCat("the cluster of ", options.server);
  options.server = place.address;
  options.others.clear();
  options.target = named.target;
  options.loopback = named.loopback;
  H5M_ASSIGN_OR_RETURN(
      client, rpc::Client::Connect(options, absl::Seconds(context_.flags().timeout_seconds),
                                   absl::Seconds(context_.flags().refused_seconds)));
  return client.get();
}

}  // namespace h5mirror::tools
