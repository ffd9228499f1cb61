// Versions.PruneVersions.
#include <utility>

#include "absl/time/clock.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/convert.h"
#include "server/page_budget.h"
#include "server/prune_plan.h"
#include "server/thinning.h"
#include "server/versions_service.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr int kPlanVersions = 500;  // of one message
constexpr absl::Duration kProgressEvery = absl::Milliseconds(200);
// The plan is of what the head holds: a commit of just now may still be on its way.
constexpr absl::Duration kSettle = absl::Seconds(10);

absl::Status Gone() { return absl::CancelledError("the caller has gone"); }

// Runs `job` to its end, or until the caller goes away.
absl::StatusOr<store::PruneProgress> RunPrune(
    store::PruneJob& job, const grpc::ServerContext& context,
    grpc::ServerWriter<v1::PruneVersionsResponse>& writer) {
  absl::Time next = absl::Now() + kProgressEvery;
  while (true) {
    H5M_ASSIGN_OR_RETURN(store::PruneProgress progress, job.Step());
    const absl::Time now = absl::Now();
    if (!progress.done && now < next) {
      if (context.IsCancelled()) return Gone();
      continue;
    }
    next = now + kProgressEvery;
    v1::PruneVersionsResponse response;
    response.set_versions_dropped(progress.versions_dropped);
    response.set_versions_to_drop(progress.versions_to_drop);
    response.set_freed_bytes(static_cast<int64_t>(progress.freed_bytes));
    if (!writer.Write(response)) return Gone();
    if (progress.done) return progress;
  }
}

}  // namespace

grpc::Status VersionsService::PruneVersions(grpc::ServerContext* context,
                                            const v1::PruneVersionsRequest* request,
                                            grpc::ServerWriter<v1::PruneVersionsResponse>* writer) {
  return RunCall(
      environment_, *context, "PruneVersions", Right::kAdmin,
      [&](const Principal& principal) { return Prune(*context, principal, *request, *writer); });
}

absl::Status VersionsService::Prune(const grpc::ServerContext& context, const Principal& principal,
                                    const v1::PruneVersionsRequest& request,
                                    grpc::ServerWriter<v1::PruneVersionsResponse>& writer) {
  H5M_ASSIGN_OR_RETURN(const store::RetentionPolicy policy, FromProto(request.policy()));
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  file->WaitApplied(kSettle).IgnoreError();
  v1::PruneVersionsResponse plan;
  PageBudget budget;
  const auto send = [&](const PlannedVersion& planned) -> absl::Status {
    v1::PlannedVersion row;
    *row.mutable_version() = ToProto(planned.version);
    for (const std::string& reason : planned.kept_by) row.add_kept_by(reason);
    if (plan.plan_size() == kPlanVersions || !budget.Takes(row)) {
      if (!writer.Write(plan)) return Gone();
      plan.Clear();
      budget = PageBudget();
      budget.Takes(row);
    }
    *plan.add_plan() = std::move(row);
    return absl::OkStatus();
  };
  H5M_ASSIGN_OR_RETURN(std::vector<store::VersionNumber> doomed, PlanPrune(*file, policy, send));
  const auto count = static_cast<int64_t>(doomed.size());
  H5M_ASSIGN_OR_RETURN(const std::vector<uint64_t> estimate,
                       EstimatePrunes(*file, {doomed}, [&context] {
                         return context.IsCancelled() ? Gone() : absl::OkStatus();
                       }));
  plan.set_versions_to_drop(count);
  plan.set_freed_bytes(static_cast<int64_t>(estimate.front()));
  if (!writer.Write(plan)) return Gone();
  if (request.dry_run()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const auto job, file->StartPrune(std::move(doomed)));
  auto pruned = RunPrune(*job, context, writer);
  if (!pruned.ok()) {
    spdlog::warn("prune: file={} stopped early ({}), by token {}; the next one goes on",
                 Quoted(request.name()), ToStd(pruned.status().message()), principal.name);
    return pruned.status();
  }
  spdlog::info("prune: file={} dropped {} of {} versions, {} given back, by token {}",
               Quoted(request.name()), pruned->versions_dropped, count,
               HumanBytes(pruned->freed_bytes), principal.name);
  if (!pruned->left.empty()) {
    spdlog::warn("prune: file={} left some space as it is: {}", Quoted(request.name()),
                 pruned->left);
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::server
