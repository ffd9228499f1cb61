#include "server/services/versions_service.h"

#include <algorithm>
#include <optional>

#include "absl/hash/hash.h"
#include "absl/strings/numbers.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/calls/own_file.h"
#include "server/calls/page_budget.h"
#include "server/history/history_pruner.h"
#include "server/quotas/space_quotas.h"
#include "server/state/convert.h"
#include "server/state/mirror_states.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr int kVersionsDefault = 100;
constexpr int kVersionsMax = 1000;

// A limit of a list: `unset` where there is none.
absl::StatusOr<absl::Time> TimeOr(bool has, const google::protobuf::Timestamp& time,
                                  std::string_view field, absl::Time unset) {
  if (!has) return unset;
  if (time.seconds() == 0 && time.nanos() == 0) return absl::UnixEpoch();  // A time like others.
  const absl::Time found = FromProto(time);
  if (found != absl::InfinitePast()) return found;
  return absl::InvalidArgumentError(StrCat(field, " is no time"));
}

}  // namespace

absl::Status CheckVersion(int64_t version) {
  if (version >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("version ", version, " is negative"));
}

absl::StatusOr<std::shared_ptr<store::File>> VersionsService::Open(const std::string& name) {
  H5M_RETURN_IF_ERROR(store::CheckName(name));
  return environment_.store.OpenFile(name);
}

absl::StatusOr<std::shared_ptr<store::File>> VersionsService::OpenToRead(const std::string& name) {
  H5M_ASSIGN_OR_RETURN(std::shared_ptr<store::File> file, Open(name));
  recent_.Keep(file);
  return file;
}

grpc::Status VersionsService::ListVersions(grpc::ServerContext* context,
                                           const v1::ListVersionsRequest* request,
                                           v1::ListVersionsResponse* response) {
  return RunCall(environment_, *context, "ListVersions", OneFile(Right::kRead, request->name()),
                 [&](const Principal&) { return List(*request, *response); });
}

absl::Status VersionsService::List(const v1::ListVersionsRequest& request,
                                   v1::ListVersionsResponse& response) {
  store::VersionNumber before = 0;
  if (!request.page_token().empty() &&
      (!absl::SimpleAtoi(request.page_token(), &before) || before <= 0)) {
    return absl::InvalidArgumentError("page_token is not from this server");
  }
  if (request.page_size() < 0) {
    return absl::InvalidArgumentError(StrCat("page_size ", request.page_size(), " is negative"));
  }
  store::VersionRange range{.before = before};
  H5M_ASSIGN_OR_RETURN(range.since, TimeOr(request.has_since_time(), request.since_time(),
                                           "since_time", range.since));
  H5M_ASSIGN_OR_RETURN(range.until, TimeOr(request.has_until_time(), request.until_time(),
                                           "until_time", range.until));
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  const int limit =
      request.page_size() == 0 ? kVersionsDefault : std::min(request.page_size(), kVersionsMax);
  H5M_ASSIGN_OR_RETURN(auto versions, file->ListVersions(range, static_cast<size_t>(limit) + 1));
  if (versions.size() > static_cast<size_t>(limit)) {
    versions.resize(static_cast<size_t>(limit));
    response.set_next_page_token(StrCat(versions.back().version));
  }
  PageBudget budget;
  for (const store::VersionInfo& version : versions) {
    v1::Version row = ToProto(version);
    if (!budget.Takes(row)) {
      response.set_next_page_token(StrCat(response.versions().rbegin()->version()));
      break;
    }
    *response.add_versions() = std::move(row);
  }
  return absl::OkStatus();
}

grpc::Status VersionsService::GetVersion(grpc::ServerContext* context,
                                         const v1::GetVersionRequest* request,
                                         v1::GetVersionResponse* response) {
  return RunCall(environment_, *context, "GetVersion",
                 OneFile(Right::kRead, request->name(), request->version()), [&](const Principal&) {
                   H5M_RETURN_IF_ERROR(CheckVersion(request->version()));
                   H5M_ASSIGN_OR_RETURN(const auto file, OpenToRead(request->name()));
                   H5M_ASSIGN_OR_RETURN(const store::VersionInfo version,
                                        file->GetVersion(request->version()));
                   *response->mutable_version() = ToProto(version);
                   return absl::OkStatus();
                 });
}

grpc::Status VersionsService::FindVersion(grpc::ServerContext* context,
                                          const v1::FindVersionRequest* request,
                                          v1::FindVersionResponse* response) {
  return RunCall(environment_, *context, "FindVersion", OneFile(Right::kRead, request->name()),
                 [&](const Principal&) { return Find(*request, *response); });
}

absl::Status VersionsService::Find(const v1::FindVersionRequest& request,
                                   v1::FindVersionResponse& response) {
  H5M_ASSIGN_OR_RETURN(const auto file, OpenToRead(request.name()));
  absl::StatusOr<store::VersionInfo> found =
      absl::InvalidArgumentError("none of back, at_time, tag and group is set");
  if (request.has_back()) {
    found = file->FindVersionBack(request.back());
  } else if (request.has_at_time()) {
    H5M_ASSIGN_OR_RETURN(const absl::Time time,
                         TimeOr(true, request.at_time(), "at_time", absl::InfinitePast()));
    found = file->FindVersionAt(time);
  } else if (request.has_tag()) {
    found = file->FindVersionTagged(request.tag());
  } else if (request.has_group()) {
    H5M_RETURN_IF_ERROR(CheckGroupId("group", request.group()));
    found = file->FindVersionOfGroup(FromProto(request.group()));
  }
  H5M_RETURN_IF_ERROR(found.status());
  *response.mutable_version() = ToProto(*found);
  return absl::OkStatus();
}

grpc::Status VersionsService::TagVersion(grpc::ServerContext* context,
                                         const v1::TagVersionRequest* request,
                                         v1::TagVersionResponse* response) {
  return RunCall(environment_, *context, "TagVersion",
                 OneFile(Right::kWrite, request->name(), request->version()),
                 [&](const Principal& principal) { return Tag(principal, *request, *response); });
}

absl::Status VersionsService::Tag(const Principal& principal, const v1::TagVersionRequest& request,
                                  v1::TagVersionResponse& response) {
  H5M_RETURN_IF_ERROR(CheckVersion(request.version()));
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  H5M_RETURN_IF_ERROR(CheckAgain(environment_, principal, OneFile(Right::kWrite, request.name())));
  // Found first, so that the answer is of the version that got the tag.
  H5M_ASSIGN_OR_RETURN(const store::VersionInfo wanted, file->GetVersion(request.version()));
  absl::MutexLock lock(&TagMutex(request.name()));
  if (request.move()) {
    H5M_RETURN_IF_ERROR(CheckTakesTag(principal, *file, request.tag(), wanted.version));
  }
  H5M_ASSIGN_OR_RETURN(
      const store::VersionNumber previous,
      environment_.quotas.Tag(*file, wanted.version, request.tag(),
                              request.move() ? store::TagMode::kMove : store::TagMode::kKeep));
  H5M_ASSIGN_OR_RETURN(const store::VersionInfo tagged, file->GetVersion(wanted.version));
  spdlog::info("tag: file={} version {} has tag {}{}, by {}", Quoted(request.name()),
               wanted.version, request.tag(),
               previous == 0 ? "" : StrCat(", which version ", previous, " had"),
               CallerName(principal));
  *response.mutable_version() = ToProto(tagged);
  response.set_previous_version(previous);
  return absl::OkStatus();
}

absl::Status VersionsService::CheckTakesTag(const Principal& principal, store::File& file,
                                            const std::string& tag, store::VersionNumber to) {
  return CheckOwnTag(principal, environment_.authenticator.RightsTo(principal, file.name()), file,
                     tag, to);
}

grpc::Status VersionsService::UntagVersion(grpc::ServerContext* context,
                                           const v1::UntagVersionRequest* request,
                                           v1::UntagVersionResponse* response) {
  return RunCall(environment_, *context, "UntagVersion", OneFile(Right::kWrite, request->name()),
                 [&](const Principal& principal) { return Untag(principal, *request, *response); });
}

absl::Status VersionsService::Untag(const Principal& principal,
                                    const v1::UntagVersionRequest& request,
                                    v1::UntagVersionResponse& response) {
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  H5M_RETURN_IF_ERROR(CheckAgain(environment_, principal, OneFile(Right::kWrite, request.name())));
  absl::MutexLock lock(&TagMutex(request.name()));
  H5M_RETURN_IF_ERROR(CheckTakesTag(principal, *file, request.tag(), 0));
  H5M_ASSIGN_OR_RETURN(const store::VersionNumber version,
                       environment_.quotas.Untag(*file, request.tag()));
  spdlog::info("untag: file={} version {} lost tag {}, by {}", Quoted(request.name()), version,
               request.tag(), CallerName(principal));
  response.set_version(version);
  return absl::OkStatus();
}

absl::Mutex& VersionsService::TagMutex(const std::string& name) {
  return tag_mutexes_[absl::HashOf(name) % tag_mutexes_.size()];
}

grpc::Status VersionsService::RollbackVersion(grpc::ServerContext* context,
                                              const v1::RollbackVersionRequest* request,
                                              v1::RollbackVersionResponse* response) {
  return RunCall(environment_, *context, "RollbackVersion",
                 OneFile(Right::kRestore, request->name(), request->version()),
                 [&](const Principal& principal) {
                   return Rollback(*context, principal, *request, *response);
                 });
}

absl::Status VersionsService::Rollback(const grpc::ServerContext& context,
                                       const Principal& principal,
                                       const v1::RollbackVersionRequest& request,
                                       v1::RollbackVersionResponse& response) {
  if (request.version() <= 0) {
    return absl::InvalidArgumentError(
        StrCat("version ", request.version(), ": name the version to go back to"));
  }
  const auto request_id = FromByteString(request.request_id());
  if (!request_id.ok()) return absl::InvalidArgumentError("request_id is not 16 bytes");
  H5M_RETURN_IF_ERROR(CheckWriter(request.writer()));
  H5M_RETURN_IF_ERROR(CheckComment(request.comment()));
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  if (environment_.quotas.ledger.is_on()) {
    H5M_ASSIGN_OR_RETURN(const store::VersionInfo wanted, file->GetVersion(request.version()));
    H5M_ASSIGN_OR_RETURN(const store::FileInfo info, file->Info());
    H5M_RETURN_IF_ERROR(
        environment_.quotas.MayRollBack(request.name(), wanted.size_bytes, info.size_bytes));
  }
  H5M_ASSIGN_OR_RETURN(const CallLease lease,
                       CallLease::Take(environment_, request.name(), principal, context,
                                       request.revoke_lease() ? CallLease::Writer::kRevoke
                                                              : CallLease::Writer::kRespect));
  H5M_RETURN_IF_ERROR(
      CheckAgain(environment_, principal, OneFile(Right::kRestore, request.name())));
  if (lease.revoked()) {
    H5M_ASSIGN_OR_RETURN(const store::Token token, file->Acquire());  // Fences the writer.
    H5M_RETURN_IF_ERROR(file->End(token, store::SessionEnd::kClean));
  }
  H5M_ASSIGN_OR_RETURN(const store::VersionInfo version,
                       file->Rollback(request.version(),
                                      MakeProvenance(request.writer(), principal.name,
                                                     request.comment(), absl::InfinitePast()),
                                      *request_id));
  environment_.pruner.Grew(request.name());
  if (const auto info = file->Info(); info.ok()) environment_.mirrors.Settle(*info);
  spdlog::info("rollback: file={} to version {} made version {}, by {} ({})",
               Quoted(request.name()), request.version(), version.version,
               LogValue(request.writer().claimed_user()), CallerName(principal));
  *response.mutable_version() = ToProto(version);
  return absl::OkStatus();
}

}  // namespace h5mirror::server
