// Versions.GetHistoryStats.
#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/calls/page_budget.h"
#include "server/history/prune_plan.h"
#include "server/history/thinning.h"
#include "server/services/versions_service.h"
#include "server/state/convert.h"

namespace h5mirror::server {
namespace {

constexpr int kVersionsDefault = 100;
constexpr int kVersionsMax = 1000;

int64_t Signed(uint64_t bytes) { return static_cast<int64_t>(bytes); }

void SetSizes(const store::HistorySizes& sizes, v1::GetHistoryStatsResponse& response) {
  response.set_head_bytes(Signed(sizes.head));
  response.set_stage_bytes(Signed(sizes.stage));
  response.set_pages_bytes(Signed(sizes.pages));
  response.set_index_bytes(Signed(sizes.index + sizes.log));
  response.set_other_bytes(Signed(sizes.sums + sizes.old));
}

}  // namespace

grpc::Status VersionsService::GetHistoryStats(grpc::ServerContext* context,
                                              const v1::GetHistoryStatsRequest* request,
                                              v1::GetHistoryStatsResponse* response) {
  return RunCall(environment_, *context, "GetHistoryStats", OneFile(Right::kRead, request->name()),
                 [&](const Principal&) { return Stats(*context, *request, *response); });
}

absl::Status VersionsService::Stats(const grpc::ServerContext& context,
                                    const v1::GetHistoryStatsRequest& request,
                                    v1::GetHistoryStatsResponse& response) {
  store::VersionRange range;
  const bool first_page = request.page_token().empty();
  if (!first_page &&
      (!absl::SimpleAtoi(request.page_token(), &range.before) || range.before <= 0)) {
    return absl::InvalidArgumentError("page_token is not from this server");
  }
  if (request.page_size() < 0) {
    return absl::InvalidArgumentError(StrCat("page_size ", request.page_size(), " is negative"));
  }
  store::RetentionPolicy policy;
  if (request.has_policy()) {
    H5M_ASSIGN_OR_RETURN(policy, FromProto(request.policy()));
  }
  const auto pause = [&context] {
    return context.IsCancelled() ? absl::CancelledError("the caller has gone") : absl::OkStatus();
  };
  H5M_ASSIGN_OR_RETURN(const auto file, OpenToRead(request.name()));
  const auto limit = static_cast<size_t>(
      request.page_size() == 0 ? kVersionsDefault : std::min(request.page_size(), kVersionsMax));
  H5M_ASSIGN_OR_RETURN(auto versions, file->ListVersions(range, limit + 1));
  if (versions.size() > limit) {
    versions.resize(limit);
    response.set_next_page_token(StrCat(versions.back().version));
  }
  PageBudget budget;
  for (const store::VersionInfo& version : versions) {
    H5M_RETURN_IF_ERROR(pause());
    v1::VersionStats row;
    *row.mutable_version() = ToProto(version);
    if (!budget.Takes(row)) {
      response.set_next_page_token(StrCat(response.versions().rbegin()->version().version()));
      break;
    }
    H5M_ASSIGN_OR_RETURN(const uint64_t saved, file->SavedBytes(version));
    row.set_saved_bytes(Signed(saved));
    *response.add_versions() = std::move(row);
  }
  if (!first_page) return absl::OkStatus();

  H5M_ASSIGN_OR_RETURN(const store::FileInfo info, file->Info());
  response.set_version_count(info.version_count);
  H5M_ASSIGN_OR_RETURN(const store::HistorySizes sizes,
                       environment_.store.Measure(request.name(), store::WithHead::kYes));
  SetSizes(sizes, response);
  if (info.version_count == 0) return absl::OkStatus();
  std::vector<std::vector<store::VersionNumber>> plans(1);  // What is garbage already.
  if (request.has_policy()) {
    H5M_ASSIGN_OR_RETURN(auto doomed, PlanPrune(*file, policy, pause));
    response.set_prune_versions(static_cast<int64_t>(doomed.size()));
    plans.push_back(std::move(doomed));
  }
  H5M_ASSIGN_OR_RETURN(const std::vector<uint64_t> freed, EstimatePrunes(*file, plans, pause));
  response.set_garbage_bytes(Signed(freed.front()));
  if (request.has_policy()) response.set_prune_bytes(Signed(freed.back()));
  return absl::OkStatus();
}

}  // namespace h5mirror::server
