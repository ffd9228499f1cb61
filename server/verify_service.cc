// Versions.VerifyHistory.
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/page_budget.h"
#include "server/versions_service.h"
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

grpc::Status VersionsService::VerifyHistory(grpc::ServerContext* context,
                                            const v1::VerifyHistoryRequest* request,
                                            grpc::ServerWriter<v1::VerifyHistoryResponse>* writer) {
  return RunCall(environment_, *context, "VerifyHistory", Right::kRead,
                 [&](const Principal&) { return Verify(*context, *request, *writer); });
}

absl::Status VersionsService::Verify(const grpc::ServerContext& context,
                                     const v1::VerifyHistoryRequest& request,
                                     grpc::ServerWriter<v1::VerifyHistoryResponse>& writer) {
  store::VerifySubset subset;
  if (request.subset() != 0 || request.subset_count() != 0) {
    subset = {request.subset(), request.subset_count()};
  }
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  H5M_ASSIGN_OR_RETURN(const auto job, file->StartVerify(subset));
  absl::Time next = absl::Now() + kProgressEvery;
  while (true) {
    H5M_ASSIGN_OR_RETURN(const store::VerifyProgress progress, job->Step());
    v1::VerifyHistoryResponse response;
    PageBudget budget;
    for (const store::Damage& damage : progress.found) {
      spdlog::error("verify: file={} damage in {} at {}: {}", Quoted(request.name()), damage.file,
                    damage.offset, damage.message);
      v1::Damage row = ToProto(damage);
      if (!budget.Takes(row)) {
        if (!writer.Write(response)) return absl::CancelledError("the caller has gone");
        response.Clear();
        budget = PageBudget();
        budget.Takes(row);
      }
      *response.add_damage() = std::move(row);
    }
    const absl::Time now = absl::Now();
    if (!progress.done && response.damage_size() == 0 && now < next) {
      if (context.IsCancelled()) return absl::CancelledError("the caller has gone");
      continue;
    }
    next = now + kProgressEvery;
    response.set_checked_bytes(static_cast<int64_t>(progress.checked_bytes));
    response.set_total_bytes(static_cast<int64_t>(progress.total_bytes));
    response.set_complete(progress.done);
    if (!writer.Write(response)) return absl::CancelledError("the caller has gone");
    if (progress.done) return absl::OkStatus();
  }
}

}  // namespace h5mirror::server
