#include "server/services/server_service.h"

#include "base/hex.h"
#include "base/status_macros.h"
#include "base/version.h"
#include "rpc/channel.h"
#include "server/settings/memory.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

// docs/reference/format.md, the one format so far.
constexpr uint32_t kStoreFormat = 1;

}  // namespace

grpc::Status ServerService::GetServer(grpc::ServerContext* context,
                                      const v1::GetServerRequest* request,
                                      v1::GetServerResponse* response) {
  return RunCall(environment_, *context, "GetServer", {}, [&](const Principal& principal) {
    H5M_RETURN_IF_ERROR(NegotiateProtocol(request->protocol()).status());
    response->set_server_version(std::string(kVersion));
    response->mutable_protocol()->set_oldest(rpc::kProtocolOldest);
    response->mutable_protocol()->set_newest(rpc::kProtocolNewest);
    response->set_incarnation(ToByteString(environment_.store.incarnation()));
    response->mutable_store_format()->set_oldest(kStoreFormat);
    response->mutable_store_format()->set_newest(kStoreFormat);
    response->set_verified_user(principal.name);
    const Authenticator& authenticator = environment_.authenticator;
    if (!authenticator.MayBelow(principal, "")) return absl::OkStatus();
    DescribeMachine(*response);
    const Rights rights = request->name().empty()
                              ? principal.rights
                              : authenticator.RightsTo(principal, request->name());
    for (const std::string& right : rights.Names()) response->add_rights(right);
    return absl::OkStatus();
  });
}

void ServerService::DescribeMachine(v1::GetServerResponse& response) const {
  *response.mutable_start_time() = ToProto(facts_.start_time);
  response.set_root(facts_.root);
  response.set_memory_max_bytes(static_cast<int64_t>(facts_.memory_max_bytes));
  response.set_memory_used_bytes(static_cast<int64_t>(ResidentBytes()));
  response.set_open_sessions(facts_.session_count());
  response.set_open_files(static_cast<int64_t>(environment_.leases.size()));
  response.set_free_bytes(static_cast<int64_t>(environment_.store.FreeDiskBytes().value_or(0)));
}

}  // namespace h5mirror::server
