// Server.GetUsage.
#include <algorithm>

#include "base/strings.h"
#include "server/services/server_service.h"

namespace h5mirror::server {

grpc::Status ServerService::GetUsage(grpc::ServerContext* context,
                                     const v1::GetUsageRequest* request,
                                     v1::GetUsageResponse* response) {
  const Needs needs = request->all() ? AnyFile(Right::kOperate) : Needs();
  return RunCall(environment_, *context, "GetUsage", needs, [&](const Principal& principal) {
    if (request->page_size() < 0) {
      return absl::InvalidArgumentError(StrCat("page_size ", request->page_size(), " is negative"));
    }
    v1::CallerUse& caller = *response->add_usages()->mutable_caller();
    caller.set_issuer(std::string(IssuerName(principal.issuer)));
    caller.set_name(principal.name);
    return absl::OkStatus();
  });
}

}  // namespace h5mirror::server
