#include "server/versions_service.h"

#include <algorithm>

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
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  const int limit =
      request.page_size() == 0 ? kVersionsDefault : std::min(request.page_size(), kVersionsMax);
  H5M_ASSIGN_OR_RETURN(auto versions, file->ListVersions(before, static_cast<size_t>(limit) + 1));
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
