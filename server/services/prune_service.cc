// Versions.PruneVersions.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/calls/page_budget.h"
#include "server/history/prune_plan.h"
#include "server/history/thinning.h"
#include "server/quotas/space_quotas.h"
#include "server/services/versions_service.h"
#include "server/state/convert.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr size_t kPlanVersions = 500;  // of one message
constexpr absl::Duration kProgressEvery = absl::Milliseconds(200);
// The plan is of what the head holds: a commit of just now may still be on its way.
constexpr absl::Duration kSettle = absl::Seconds(10);
constexpr absl::Duration kSettleSlice = absl::Milliseconds(20);

}  // namespace

// One call: the plan, the estimate, and the prune, in steps.
class VersionsService::PruneSteps final : public TypedStreamSource<v1::PruneVersionsResponse> {
 public:
  PruneSteps(VersionsService& service, const v1::PruneVersionsRequest& request, std::string token)
      : service_(service), request_(request), token_(std::move(token)) {}
  ~PruneSteps() override {
    if (job_ == nullptr) return;
    service_.environment_.quotas.counter.Changed(request_.name());
    if (is_done_) return;
    spdlog::warn("prune: file={} stopped early ({}), by {}; the next one goes on",
                 Quoted(request_.name()), failure_, token_);
  }

  absl::StatusOr<Next> Fill(const StreamTurn& turn, v1::PruneVersionsResponse& response) override {
    if (file_ == nullptr) {
      H5M_RETURN_IF_ERROR(Open());
      return Next::kNothingYet;
    }
    if (planner_ != nullptr) return Plan(turn, response);
    return Step(response);
  }

 private:
  absl::Status Open() {
    H5M_ASSIGN_OR_RETURN(policy_, FromProto(request_.policy()));
    H5M_ASSIGN_OR_RETURN(file_, service_.Open(request_.name()));
    planner_ = std::make_unique<PrunePlanner>(*file_, policy_);
    settled_until_ = absl::Now() + kSettle;
    return absl::OkStatus();
  }

  absl::StatusOr<Next> Plan(const StreamTurn& turn, v1::PruneVersionsResponse& response) {
    if (absl::Now() < settled_until_) {
      if (absl::IsDeadlineExceeded(file_->WaitApplied(kSettleSlice))) return Next::kNothingYet;
      settled_until_ = absl::InfinitePast();
    }
    if (next_planned_ == plan_.size()) {
      H5M_ASSIGN_OR_RETURN(plan_, planner_->Next(kPlanVersions));
      next_planned_ = 0;
    }
    if (plan_.empty()) return Estimate(turn, response);
    for (PageBudget budget; next_planned_ < plan_.size(); ++next_planned_) {
      const PlannedVersion& planned = plan_[next_planned_];
      v1::PlannedVersion row;
      *row.mutable_version() = ToProto(planned.version);
      for (const std::string& reason : planned.kept_by) row.add_kept_by(reason);
      if (!budget.Takes(row)) break;
      *response.add_plan() = std::move(row);
    }
    return Next::kMessage;
  }

  absl::StatusOr<Next> Estimate(const StreamTurn& turn, v1::PruneVersionsResponse& response) {
    std::vector<store::VersionNumber> doomed = planner_->TakeDoomed();
    planner_.reset();
    count_ = static_cast<int64_t>(doomed.size());
    H5M_ASSIGN_OR_RETURN(
        const std::vector<uint64_t> estimate, EstimatePrunes(*file_, {doomed}, [&turn] {
          return turn.is_cancelled ? absl::CancelledError("the caller has gone") : absl::OkStatus();
        }));
    response.set_versions_to_drop(count_);
    response.set_freed_bytes(static_cast<int64_t>(estimate.front()));
    if (request_.dry_run()) return Next::kLastMessage;
    H5M_ASSIGN_OR_RETURN(job_, file_->StartPrune(std::move(doomed)));
    next_ = absl::Now() + kProgressEvery;
    return Next::kMessage;
  }

  absl::StatusOr<Next> Step(v1::PruneVersionsResponse& response) {
    absl::StatusOr<store::PruneProgress> progress = job_->Step();
    if (!progress.ok()) {
      failure_ = ToStd(progress.status().message());
      return progress.status();
    }
    const absl::Time now = absl::Now();
    if (!progress->done && now < next_) return Next::kNothingYet;
    next_ = now + kProgressEvery;
    response.set_versions_dropped(progress->versions_dropped);
    response.set_versions_to_drop(progress->versions_to_drop);
    response.set_freed_bytes(static_cast<int64_t>(progress->freed_bytes));
    if (!progress->done) return Next::kMessage;
    is_done_ = true;
    LogEnd(*progress);
    return Next::kLastMessage;
  }

  void LogEnd(const store::PruneProgress& pruned) const {
    spdlog::info("prune: file={} dropped {} of {} versions, {} given back, by {}",
                 Quoted(request_.name()), pruned.versions_dropped, count_,
                 HumanBytes(pruned.freed_bytes), token_);
    if (pruned.left.empty()) return;
    spdlog::warn("prune: file={} left some space as it is: {}", Quoted(request_.name()),
                 pruned.left);
  }

  VersionsService& service_;
  const v1::PruneVersionsRequest request_;
  const std::string token_;
  store::RetentionPolicy policy_;
  std::shared_ptr<store::File> file_;      // null: not begun
  std::unique_ptr<PrunePlanner> planner_;  // null: all is planned
  std::vector<PlannedVersion> plan_;       // what was planned last
  size_t next_planned_ = 0;                // and not sent yet
  absl::Time settled_until_;
  int64_t count_ = 0;
  std::unique_ptr<store::PruneJob> job_;  // null: not yet
  absl::Time next_;
  bool is_done_ = false;
  std::string failure_ = "the caller has gone";
};

StreamReactor* VersionsService::PruneVersions(grpc::CallbackServerContext* context,
                                              const grpc::ByteBuffer* bytes) {
  return StartStream<v1::PruneVersionsRequest>(
      environment_, *context, "PruneVersions", Right::kDelete, *bytes,
      [this](const v1::PruneVersionsRequest& request, const Principal& principal) {
        return std::make_unique<PruneSteps>(*this, request, CallerName(principal));
      });
}

}  // namespace h5mirror::server
