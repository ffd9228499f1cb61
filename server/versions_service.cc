#include "server/versions_service.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "base/crc32c.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "server/convert.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr int kVersionsDefault = 100;
constexpr int kVersionsMax = 1000;
// Bytes of one ReadVersion message.
constexpr uint64_t kReadBytes = 512 << 10;

// Runs of one MapVersion message.
constexpr int kMapRuns = 1000;

// A limit of a list: `unset` where there is none.
absl::StatusOr<absl::Time> TimeOr(bool has, const google::protobuf::Timestamp& time,
                                  std::string_view field, absl::Time unset) {
  if (!has) return unset;
  if (time.seconds() == 0 && time.nanos() == 0) return absl::UnixEpoch();  // A time like others.
  const absl::Time found = FromProto(time);
  if (found != absl::InfinitePast()) return found;
  return absl::InvalidArgumentError(StrCat(field, " is no time"));
}

absl::Status CheckVersion(int64_t version) {
  if (version >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("version ", version, " is negative"));
}

// Sends [begin, end) but for what reads as zeros anyway.
absl::Status SendRange(store::VersionReader& reader, uint64_t begin, uint64_t end,
                       grpc::ServerWriter<v1::ReadVersionResponse>& writer) {
  v1::ReadVersionResponse response;
  uint64_t offset = begin;
  while (offset < end) {
    H5M_ASSIGN_OR_RETURN(Extent data, reader.NextData(offset));
    if (data.length == 0 || data.offset >= end) break;
    // The reader may answer with a range that began before.
    const uint64_t data_end = std::min(data.end(), end);
    offset = std::max(offset, data.offset);
    for (; offset < data_end; offset += response.data().size()) {
      std::string& bytes = *response.mutable_data();
      bytes.resize(std::min(kReadBytes, data_end - offset));
      H5M_RETURN_IF_ERROR(reader.Read(offset, absl::MakeSpan(bytes)));
      response.set_offset(offset);
      response.set_data_crc32c(Crc32c(bytes));
      if (!writer.Write(response)) return absl::CancelledError("the caller has gone");
    }
  }
  return absl::OkStatus();
}

// Sends the runs of the pages that `request` wants, each as long as it is: those that the store
// gives in parts are put together.
absl::Status SendMap(store::VersionReader& reader, const v1::MapVersionRequest& request,
                     grpc::ServerWriter<v1::MapVersionResponse>& writer) {
  const uint64_t first = request.first_page();
  const uint64_t end = request.page_count() == 0 || request.page_count() > UINT64_MAX - first
                           ? UINT64_MAX
                           : first + request.page_count();
  v1::MapVersionResponse response;
  std::optional<store::PlacedRun> open;
  for (uint64_t page = first; page < end;) {
    H5M_ASSIGN_OR_RETURN(std::vector<store::PlacedRun> runs, reader.Locate(page));
    if (runs.empty()) break;
    page = runs.back().page_end();
    for (store::PlacedRun& run : runs) {
      if (run.page >= end) break;
      run.page_count = std::min(run.page_count, end - run.page);
      if (open.has_value() && open->TakeIn(run, reader.page_size_bytes())) continue;
      if (open.has_value()) *response.add_runs() = ToProto(*open);
      open = std::move(run);
    }
    if (response.runs_size() < kMapRuns) continue;
    if (!writer.Write(response)) return absl::CancelledError("the caller has gone");
    response.Clear();
  }
  if (open.has_value()) *response.add_runs() = ToProto(*open);
  if (response.runs_size() > 0 && !writer.Write(response)) {
    return absl::CancelledError("the caller has gone");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<store::File>> VersionsService::Open(const std::string& name) {
  H5M_RETURN_IF_ERROR(store::CheckName(name));
  return environment_.store.OpenFile(name);
}

grpc::Status VersionsService::ListVersions(grpc::ServerContext* context,
                                           const v1::ListVersionsRequest* request,
                                           v1::ListVersionsResponse* response) {
  return RunCall(environment_, *context, "ListVersions", Right::kRead,
                 [&](const Principal&) { return List(*request, *response); });
}

absl::Status VersionsService::List(const v1::ListVersionsRequest& request,
                                   v1::ListVersionsResponse& response) {
  store::VersionNumber before = 0;
  if (!request.page_token().empty() &&
      (!absl::SimpleAtoi(request.page_token(), &before) || before <= 0)) {
    return absl::InvalidArgumentError("page_token is none of this server's");
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
  for (const store::VersionInfo& version : versions) *response.add_versions() = ToProto(version);
  return absl::OkStatus();
}

grpc::Status VersionsService::GetVersion(grpc::ServerContext* context,
                                         const v1::GetVersionRequest* request,
                                         v1::GetVersionResponse* response) {
  return RunCall(environment_, *context, "GetVersion", Right::kRead, [&](const Principal&) {
    H5M_RETURN_IF_ERROR(CheckVersion(request->version()));
    H5M_ASSIGN_OR_RETURN(const auto file, Open(request->name()));
    H5M_ASSIGN_OR_RETURN(const store::VersionInfo version, file->GetVersion(request->version()));
    *response->mutable_version() = ToProto(version);
    return absl::OkStatus();
  });
}

grpc::Status VersionsService::FindVersion(grpc::ServerContext* context,
                                          const v1::FindVersionRequest* request,
                                          v1::FindVersionResponse* response) {
  return RunCall(environment_, *context, "FindVersion", Right::kRead,
                 [&](const Principal&) { return Find(*request, *response); });
}

absl::Status VersionsService::Find(const v1::FindVersionRequest& request,
                                   v1::FindVersionResponse& response) {
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  absl::StatusOr<store::VersionInfo> found =
      absl::InvalidArgumentError("neither back nor at_time nor tag is set");
  if (request.has_back()) {
    found = file->FindVersionBack(request.back());
  } else if (request.has_at_time()) {
    H5M_ASSIGN_OR_RETURN(const absl::Time time,
                         TimeOr(true, request.at_time(), "at_time", absl::InfinitePast()));
    found = file->FindVersionAt(time);
  } else if (request.has_tag()) {
    found = file->FindVersionTagged(request.tag());
  }
  H5M_RETURN_IF_ERROR(found.status());
  *response.mutable_version() = ToProto(*found);
  return absl::OkStatus();
}

grpc::Status VersionsService::TagVersion(grpc::ServerContext* context,
                                         const v1::TagVersionRequest* request,
                                         v1::TagVersionResponse* response) {
  return RunCall(environment_, *context, "TagVersion", Right::kWrite,
                 [&](const Principal& principal) { return Tag(principal, *request, *response); });
}

absl::Status VersionsService::Tag(const Principal& principal, const v1::TagVersionRequest& request,
                                  v1::TagVersionResponse& response) {
  H5M_RETURN_IF_ERROR(CheckVersion(request.version()));
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  // Found first, so that the answer is of the version that got the tag.
  H5M_ASSIGN_OR_RETURN(const store::VersionInfo wanted, file->GetVersion(request.version()));
  H5M_ASSIGN_OR_RETURN(const store::VersionNumber previous,
                       file->Tag(wanted.version, request.tag(),
                                 request.move() ? store::TagMode::kMove : store::TagMode::kKeep));
  H5M_ASSIGN_OR_RETURN(const store::VersionInfo tagged, file->GetVersion(wanted.version));
  spdlog::info("tag: file=\"{}\" version {} has tag {}, which version {} had, by token {}",
               request.name(), wanted.version, request.tag(), previous, principal.name);
  *response.mutable_version() = ToProto(tagged);
  response.set_previous_version(previous);
  return absl::OkStatus();
}

grpc::Status VersionsService::UntagVersion(grpc::ServerContext* context,
                                           const v1::UntagVersionRequest* request,
                                           v1::UntagVersionResponse* response) {
  return RunCall(
      environment_, *context, "UntagVersion", Right::kWrite, [&](const Principal& principal) {
        H5M_ASSIGN_OR_RETURN(const auto file, Open(request->name()));
        H5M_ASSIGN_OR_RETURN(const store::VersionNumber version, file->Untag(request->tag()));
        spdlog::info("untag: file=\"{}\" version {} lost tag {}, by token {}", request->name(),
                     version, request->tag(), principal.name);
        response->set_version(version);
        return absl::OkStatus();
      });
}

grpc::Status VersionsService::MapVersion(grpc::ServerContext* context,
                                         const v1::MapVersionRequest* request,
                                         grpc::ServerWriter<v1::MapVersionResponse>* writer) {
  return RunCall(environment_, *context, "MapVersion", Right::kRead,
                 [&](const Principal&) { return Map(*request, *writer); });
}

absl::Status VersionsService::Map(const v1::MapVersionRequest& request,
                                  grpc::ServerWriter<v1::MapVersionResponse>& writer) {
  H5M_RETURN_IF_ERROR(CheckVersion(request.version()));
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  H5M_ASSIGN_OR_RETURN(const auto reader, file->OpenVersion(request.version()));
  v1::MapVersionResponse response;
  *response.mutable_version() = ToProto(reader->info());
  response.set_page_size_bytes(reader->page_size_bytes());
  if (!writer.Write(response)) return absl::CancelledError("the caller has gone");
  return SendMap(*reader, request, writer);
}

grpc::Status VersionsService::ReadVersion(grpc::ServerContext* context,
                                          const v1::ReadVersionRequest* request,
                                          grpc::ServerWriter<v1::ReadVersionResponse>* writer) {
  return RunCall(environment_, *context, "ReadVersion", Right::kRead,
                 [&](const Principal&) { return Read(*request, *writer); });
}

absl::Status VersionsService::Read(const v1::ReadVersionRequest& request,
                                   grpc::ServerWriter<v1::ReadVersionResponse>& writer) {
  H5M_RETURN_IF_ERROR(CheckVersion(request.version()));
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  H5M_ASSIGN_OR_RETURN(const auto reader, file->OpenVersion(request.version()));
  v1::ReadVersionResponse first;
  *first.mutable_version() = ToProto(reader->info());
  if (!writer.Write(first)) return absl::CancelledError("the caller has gone");
  const uint64_t size = reader->info().size_bytes;
  const uint64_t begin = std::min(request.offset(), size);
  const uint64_t wanted = request.length_bytes() == 0 ? size : request.length_bytes();
  return SendRange(*reader, begin, begin + std::min(wanted, size - begin), writer);
}

grpc::Status VersionsService::RollbackVersion(grpc::ServerContext* context,
                                              const v1::RollbackVersionRequest* request,
                                              v1::RollbackVersionResponse* response) {
  return RunCall(environment_, *context, "RollbackVersion", Right::kAdmin,
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
  H5M_ASSIGN_OR_RETURN(const CallLease lease,
                       CallLease::Take(environment_, request.name(), principal, context,
                                       request.revoke_lease() ? CallLease::Writer::kRevoke
                                                              : CallLease::Writer::kRespect));
  if (lease.revoked()) {
    H5M_ASSIGN_OR_RETURN(const store::Token token, file->Acquire());  // Fences the writer.
    H5M_RETURN_IF_ERROR(file->End(token, store::SessionEnd::kClean));
  }
  H5M_ASSIGN_OR_RETURN(const store::VersionInfo version,
                       file->Rollback(request.version(),
                                      MakeProvenance(request.writer(), principal.name,
                                                     request.comment(), absl::InfinitePast()),
                                      *request_id));
  spdlog::info("rollback: file=\"{}\" to version {} made version {}, by {} (token {})",
               request.name(), request.version(), version.version, request.writer().claimed_user(),
               principal.name);
  *response.mutable_version() = ToProto(version);
  return absl::OkStatus();
}

}  // namespace h5mirror::server
