// Versions.VerifyHistory.
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/calls/page_budget.h"
#include "server/notify/event.h"
#include "server/services/versions_service.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kProgressEvery = absl::Milliseconds(200);

v1::DamagePlace ToProto(store::DamagePlace place) {
  switch (place) {
    case store::DamagePlace::kIndex:
      return v1::DAMAGE_PLACE_INDEX;
    case store::DamagePlace::kHead:
      return v1::DAMAGE_PLACE_HEAD;
    case store::DamagePlace::kStage:
      return v1::DAMAGE_PLACE_STAGE;
    case store::DamagePlace::kPages:
      return v1::DAMAGE_PLACE_PAGES;
  }
  return v1::DAMAGE_PLACE_UNSPECIFIED;
}

v1::Damage ToProto(const store::Damage& damage) {
  v1::Damage row;
  row.set_place(ToProto(damage.place));
  row.set_file(damage.file);
  row.set_offset(damage.offset);
  row.set_oldest_version(damage.oldest);
  row.set_newest_version(damage.newest);
  row.set_message(damage.message);
  return row;
}

}  // namespace

// One call.
class VersionsService::VerifySteps final : public TypedStreamSource<v1::VerifyHistoryResponse> {
 public:
  VerifySteps(VersionsService& service, const v1::VerifyHistoryRequest& request)
      : service_(service), request_(request) {}

  absl::StatusOr<Next> Fill(const StreamTurn&, v1::VerifyHistoryResponse& response) override {
    if (job_ == nullptr) {
      H5M_RETURN_IF_ERROR(Open());
      return Next::kNothingYet;
    }
    if (next_damage_ == progress_.found.size()) H5M_RETURN_IF_ERROR(Step());
    for (PageBudget budget; next_damage_ < progress_.found.size(); ++next_damage_) {
      v1::Damage row = ToProto(progress_.found[next_damage_]);
      if (!budget.Takes(row)) break;
      *response.add_damage() = std::move(row);
    }
    if (next_damage_ < progress_.found.size()) return Next::kMessage;
    const absl::Time now = absl::Now();
    if (!progress_.done && response.damage_size() == 0 && now < next_) return Next::kNothingYet;
    next_ = now + kProgressEvery;
    response.set_checked_bytes(static_cast<int64_t>(progress_.checked_bytes));
    response.set_total_bytes(static_cast<int64_t>(progress_.total_bytes));
    response.set_complete(progress_.done);
    return progress_.done ? Next::kLastMessage : Next::kMessage;
  }

 private:
  absl::Status Open() {
    store::VerifySubset subset;
    if (request_.subset() != 0 || request_.subset_count() != 0) {
      subset = {request_.subset(), request_.subset_count()};
    }
    H5M_ASSIGN_OR_RETURN(file_, service_.Open(request_.name()));
    H5M_ASSIGN_OR_RETURN(job_, file_->StartVerify(subset));
    next_ = absl::Now() + kProgressEvery;
    return absl::OkStatus();
  }

  absl::Status Step() {
    next_damage_ = 0;
    H5M_ASSIGN_OR_RETURN(progress_, job_->Step());
    for (const store::Damage& damage : progress_.found) {
      spdlog::error("verify: file={} damage in {} at {}: {}", Quoted(request_.name()), damage.file,
                    damage.offset, damage.message);
    }
    if (progress_.done && !progress_.left.empty()) {
      spdlog::warn("verify: file={} {}", Quoted(request_.name()), progress_.left);
    }
    if (!progress_.found.empty() && !std::exchange(has_told_, true)) Tell(progress_.found[0]);
    return absl::OkStatus();
  }

  // Sends an event for the first damage only; the answer and the log have all.
  void Tell(const store::Damage& damage) {
    Notify(service_.environment_.events,
           {.kind = EventKind::kVerifyFailed,
            .file = request_.name(),
            .text = StrCat("damage in ", damage.file, " at ", damage.offset, ": ", damage.message),
            .numbers = {{"oldest_version", damage.oldest}, {"newest_version", damage.newest}}});
  }

  VersionsService& service_;
  const v1::VerifyHistoryRequest request_;
  bool has_told_ = false;
  std::shared_ptr<store::File> file_;
  std::unique_ptr<store::VerifyJob> job_;  // null: not begun
  store::VerifyProgress progress_;         // of the last step
  size_t next_damage_ = 0;                 // of its damage: not sent yet
  absl::Time next_;
};

StreamReactor* VersionsService::VerifyHistory(grpc::CallbackServerContext* context,
                                              const grpc::ByteBuffer* bytes) {
  return StartStream<v1::VerifyHistoryRequest>(
      environment_, *context, "VerifyHistory", Right::kRead, *bytes,
      [this](const v1::VerifyHistoryRequest& request, const Principal&) {
        return std::make_unique<VerifySteps>(*this, request);
      });
}

}  // namespace h5mirror::server
