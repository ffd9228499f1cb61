// Versions::CommitVersion: a version of the file as it is, on request.
#include <optional>

#include "base/hex.h"
#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/convert.h"
#include "server/history_keeper.h"
#include "server/versions_service.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr absl::Duration kWaitDefault = absl::Seconds(30);
constexpr absl::Duration kWaitMax = absl::Hours(1);
constexpr absl::Duration kSlice = absl::Milliseconds(200);
// A cut that took the request becomes durable as fast as the disk is, or fails.
constexpr absl::Duration kDurableWaitMax = absl::Minutes(5);

absl::StatusOr<absl::Duration> WaitOf(const v1::CommitVersionRequest& request) {
  if (!request.has_wait()) return kWaitDefault;
  const absl::Duration wait =
      absl::Seconds(request.wait().seconds()) + absl::Nanoseconds(request.wait().nanos());
  if (wait >= absl::ZeroDuration() && wait <= kWaitMax) return wait;
  return absl::InvalidArgumentError(
      StrCat("wait ", request.wait().seconds(), " s is not in the range from 0 to 1 hour"));
}

// Has the next cut of the writer take the request. nullopt: the writer went before it made one.
class AtNextCut {
 public:
  AtNextCut(const ServiceEnvironment& environment, const grpc::ServerContext& context,
            const std::string& name, absl::Duration wait)
      : environment_(environment),
        context_(context),
        name_(name),
        wait_(wait),
        start_(environment.clock.Monotonic()) {}

  std::optional<absl::StatusOr<store::DurableCut>> Run(const std::string& user,
                                                       const std::string& comment,
                                                       const Bytes16& request_id) {
    const auto commit = environment_.commits.Post(name_, user, comment, request_id);
    for (;;) {
      if (auto result = commit->Await(kSlice)) return result;
      const std::optional<absl::Status> given_up = GivesUp();
      if (!given_up.has_value()) continue;
      if (environment_.commits.TakeBack(name_, commit)) {
        if (given_up->ok()) return std::nullopt;
        return *given_up;
      }
      // A cut has it. It is a version now, or it fails.
      if (auto result = commit->Await(kDurableWaitMax)) return result;
      return absl::DeadlineExceededError(
          StrCat(name_, ": the cut did not become durable; it will be a version if it does"));
    }
  }

 private:
  // OK: there is no writer any more. nullopt: go on waiting.
  std::optional<absl::Status> GivesUp() const {
    if (context_.IsCancelled()) return absl::CancelledError("the caller has gone");
    const auto holder = environment_.leases.HolderOf(name_);
    if (!holder.has_value()) return absl::OkStatus();
    if (environment_.clock.Monotonic() - start_ < wait_) return std::nullopt;
    return absl::DeadlineExceededError(StrCat(
        name_, " is being written by ", holder->Describe(), ", which made no cut in ",
        HumanDuration(wait_),
        ": no version was made. Its next H5Fflush or close is one; wait longer, or tag a version"));
  }

  const ServiceEnvironment& environment_;
  const grpc::ServerContext& context_;
  const std::string& name_;
  const absl::Duration wait_;
  const absl::Duration start_;
};

}  // namespace

grpc::Status VersionsService::CommitVersion(grpc::ServerContext* context,
                                            const v1::CommitVersionRequest* request,
                                            v1::CommitVersionResponse* response) {
  return RunCall(
      environment_, *context, "CommitVersion", Right::kWrite,
      [&](const Principal& principal) { return Commit(*context, principal, *request, *response); });
}

absl::Status VersionsService::Commit(const grpc::ServerContext& context, const Principal& principal,
                                     const v1::CommitVersionRequest& request,
                                     v1::CommitVersionResponse& response) {
  const auto request_id = FromByteString(request.request_id());
  if (!request_id.ok()) return absl::InvalidArgumentError("request_id is not 16 bytes");
  H5M_RETURN_IF_ERROR(CheckWriter(request.writer()));
  H5M_RETURN_IF_ERROR(CheckComment(request.comment()));
  H5M_ASSIGN_OR_RETURN(const absl::Duration wait, WaitOf(request));
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  if (auto done = file->FindRequest(*request_id); done.ok()) {
    *response.mutable_version() = ToProto(*done);
    return absl::OkStatus();
  }
  if (environment_.leases.HolderOf(request.name()).has_value()) {
    const auto cut = AtNextCut(environment_, context, request.name(), wait)
                         .Run(principal.name, request.comment(), *request_id);
    if (cut.has_value()) {
      H5M_RETURN_IF_ERROR(cut->status());
      if ((*cut)->stopped) {
        return absl::ResourceExhaustedError(StrCat(request.name(),
                                                   ": no version was made, its history is ",
                                                   environment_.keeper.NoticeOf(request.name())));
      }
      H5M_ASSIGN_OR_RETURN(const store::VersionInfo version, file->GetVersion((*cut)->version));
      *response.mutable_version() = ToProto(version);
      response.set_unchanged((*cut)->unchanged);
      return absl::OkStatus();
    }
  }
  H5M_ASSIGN_OR_RETURN(const store::KeptVersion kept,
                       file->Keep(MakeProvenance(request.writer(), principal.name,
                                                 request.comment(), absl::InfinitePast()),
                                  *request_id));
  environment_.keeper.Grew(request.name());
  *response.mutable_version() = ToProto(kept.version);
  response.set_unchanged(kept.unchanged);
  return absl::OkStatus();
}

}  // namespace h5mirror::server
