// Server.GetUsage.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "server/quotas/caller_limits.h"
#include "server/quotas/space_quotas.h"
#include "server/services/server_service.h"

namespace h5mirror::server {
namespace {

constexpr int kPageDefault = 100;
constexpr int kPageMax = 1000;
// Directories that one answer tells a caller of, and that are looked through for them.
constexpr int kOwnSpacesMax = 100;
constexpr size_t kSpacesAtOnce = 256;
constexpr size_t kSpacesLookedAt = 16 * kSpacesAtOnce;
// Begins the page tokens of directories, which follow those of callers.
constexpr char kSpaceToken = '/';

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

void AddAmount(std::string_view what, uint64_t used, uint64_t limit, v1::SpaceUse& space) {
  v1::Amount& amount = *space.add_amounts();
  amount.set_what(std::string(what));
  amount.set_used(used);
  if (limit > 0) amount.set_limit(limit);
}

void Fill(const SpaceUse& use, v1::SpaceUse& space) {
  space.set_directory(use.directory);
  space.set_table(use.rule.source);
  AddAmount("head_bytes", use.sizes.head_bytes, use.rule.head_bytes, space);
  AddAmount("history_bytes", use.sizes.history_bytes, use.rule.history_bytes, space);
  if (use.rule.archived_bytes > 0) {
    AddAmount("archived_bytes", use.sizes.archived_bytes, use.rule.archived_bytes, space);
  }
  AddAmount("files", use.files, use.rule.max_files, space);
  // Without a limit they are not counted.
  if (use.rule.max_tags > 0) AddAmount("tags", use.sizes.tags, use.rule.max_tags, space);
  AddAmount("removed_bytes", use.removed_bytes, use.rule.removed_bytes, space);
  AddAmount("removed_files", use.removed_files, use.rule.max_files, space);
}

// The directories with quotas that a caller may write to.
void FillOwn(const SpaceLedger& ledger, const Authenticator& authenticator,
             const Principal& principal, v1::Usage& usage) {
  std::string after;
  for (size_t seen = 0; seen < kSpacesLookedAt; seen += kSpacesAtOnce) {
    const std::vector<SpaceUse> uses = ledger.List(after, kSpacesAtOnce);
    for (const SpaceUse& use : uses) {
      // A name that no file has: rights are those to a file there.
      const std::string name = StrCat(use.directory, use.directory.empty() ? "" : "/", ".");
      if (!authenticator.RightsTo(principal, name).Has(Right::kWrite)) continue;
      if (usage.spaces_size() == kOwnSpacesMax) return;
      Fill(use, *usage.add_spaces());
    }
    if (uses.size() < kSpacesAtOnce) return;
    after = uses.back().directory;
  }
}

void FillAllSpaces(const SpaceLedger& ledger, std::string_view after, size_t max,
                   v1::GetUsageResponse& response) {
  std::vector<SpaceUse> uses = ledger.List(after, max + 1);
  if (uses.size() > max) {
    uses.resize(max);
    response.set_next_page_token(StrCat(std::string(1, kSpaceToken), uses.back().directory));
  }
  for (const SpaceUse& use : uses) Fill(use, *response.add_usages()->add_spaces());
}

void FillAll(CallerLimits* limits, const SpaceLedger& ledger, const v1::GetUsageRequest& request,
             v1::GetUsageResponse& response) {
  const size_t max = static_cast<size_t>(
      request.page_size() == 0 ? kPageDefault : std::min(request.page_size(), kPageMax));
  const std::string_view token = request.page_token();
  if (!token.empty() && token.front() == kSpaceToken) {
    return FillAllSpaces(ledger, token.substr(1), max, response);
  }
  std::vector<CallerUse> uses;
  if (limits != nullptr) uses = limits->UseOfAll(request.page_token(), max + 1);
  if (uses.size() > max) {
    uses.resize(max);
    response.set_next_page_token(uses.back().key);
  } else if (ledger.is_on()) {
    response.set_next_page_token(std::string(1, kSpaceToken));
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
    CallerLimits* limits = environment_.limits;
    if (limits != nullptr && !limits->is_on()) limits = nullptr;
    const SpaceLedger& ledger = environment_.quotas.ledger;
    if (request->all()) {
      H5M_RETURN_IF_ERROR(environment_.authenticator.CheckAllFiles(principal, Right::kOperate));
      FillAll(limits, ledger, *request, *response);
      return absl::OkStatus();
    }
    v1::Usage& usage = *response->add_usages();
    FillOwn(ledger, environment_.authenticator, principal, usage);
    v1::CallerUse& caller = *usage.mutable_caller();
    if (limits != nullptr) {
      Fill(limits->UseOf({principal, AddressOf(*context, principal)}), caller);
    } else {
      caller.set_issuer(std::string(IssuerName(principal.issuer)));
      caller.set_name(principal.name);
    }
    return absl::OkStatus();
  });
}

}  // namespace h5mirror::server
