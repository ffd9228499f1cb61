// Server.GetUsage.
#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "server/quotas/caller_limits.h"
#include "server/services/server_service.h"

namespace h5mirror::server {
namespace {

constexpr int kPageDefault = 100;
constexpr int kPageMax = 1000;

void Fill(const CallerUse& use, v1::CallerUse& caller) {
  caller.set_issuer(use.issuer);
  caller.set_name(use.name);
  caller.set_table(use.table);
  for (size_t i = 0; i < use.amounts.size(); ++i) {
    v1::Amount& amount = *caller.add_amounts();
    amount.set_what(std::string(NameOf(static_cast<LimitKind>(i))));
    amount.set_used(use.amounts[i].used);
    if (use.amounts[i].limit.has_value()) amount.set_limit(*use.amounts[i].limit);
    amount.set_refused(use.amounts[i].refused);
  }
}

void FillAll(CallerLimits& limits, const v1::GetUsageRequest& request,
             v1::GetUsageResponse& response) {
  const size_t max = static_cast<size_t>(
      request.page_size() == 0 ? kPageDefault : std::min(request.page_size(), kPageMax));
  std::vector<CallerUse> uses = limits.UseOfAll(request.page_token(), max + 1);
  if (uses.size() > max) {
    uses.resize(max);
    response.set_next_page_token(uses.back().key);
  }
  for (const CallerUse& use : uses) Fill(use, *response.add_usages()->mutable_caller());
}

}  // namespace

grpc::Status ServerService::GetUsage(grpc::ServerContext* context,
                                     const v1::GetUsageRequest* request,
                                     v1::GetUsageResponse* response) {
  const Needs needs = request->all() ? AnyFile(Right::kOperate) : Needs();
  return RunCall(environment_, *context, "GetUsage", needs, [&](const Principal& principal) {
    if (request->page_size() < 0) {
      return absl::InvalidArgumentError(StrCat("page_size ", request->page_size(), " is negative"));
    }
    CallerLimits* const limits = environment_.limits;
    const bool is_counted = limits != nullptr && limits->is_on();
    if (request->all()) {
      if (is_counted) FillAll(*limits, *request, *response);
      return absl::OkStatus();
    }
    v1::CallerUse& caller = *response->add_usages()->mutable_caller();
    if (is_counted) {
      Fill(limits->UseOf({principal, AddressOf(*context, principal)}), caller);
    } else {
      caller.set_issuer(std::string(IssuerName(principal.issuer)));
      caller.set_name(principal.name);
    }
    return absl::OkStatus();
  });
}

}  // namespace h5mirror::server
