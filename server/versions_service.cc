#include "server/versions_service.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "base/hex.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "server/convert.h"
#include "server/history_keeper.h"
#include "server/mirror_states.h"
#include "server/page_budget.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr int kVersionsDefault = 100;
constexpr int kVersionsMax = 1000;
// Runs of one MapVersion message.
constexpr int kMapRuns = 1000;
// And the checksums that it brings, about.
constexpr size_t kMapSums = 1 << 16;
// And the bytes of the names of files.
constexpr size_t kMapNameBytes = 256 << 10;

// A limit of a list: `unset` where there is none.
absl::StatusOr<absl::Time> TimeOr(bool has, const google::protobuf::Timestamp& time,
                                  std::string_view field, absl::Time unset) {
  if (!has) return unset;
  if (time.seconds() == 0 && time.nanos() == 0) return absl::UnixEpoch();  // A time like others.
  const absl::Time found = FromProto(time);
  if (found != absl::InfinitePast()) return found;
  return absl::InvalidArgumentError(StrCat(field, " is no time"));
}

// Sends runs of pages in messages of a bounded size, each run as long as it is: those that the
// store gives in parts are put together.
class MapSender {
 public:
  MapSender(uint32_t page_size_bytes, grpc::ServerWriter<v1::MapVersionResponse>& writer)
      : page_size_bytes_(page_size_bytes), writer_(writer) {}

  absl::Status Take(store::PlacedRun run) {
    // A run that comes with checksums is as large as it is long.
    const bool may_grow = open_.page_count > 0 && open_.page_crc32c.size() < kMapSums;
    if (may_grow && open_.TakeIn(run, page_size_bytes_)) return absl::OkStatus();
    Close();
    open_ = std::move(run);
    const bool has_room =
        response_.runs_size() < kMapRuns && sums_ < kMapSums && name_bytes_ < kMapNameBytes;
    return has_room ? absl::OkStatus() : Send();
  }
  absl::Status Finish() {
    Close();
    return response_.runs_size() == 0 ? absl::OkStatus() : Send();
  }

 private:
  void Close() {
    if (open_.page_count == 0) return;
    sums_ += open_.page_crc32c.size();
    name_bytes_ += open_.file.size();
    *response_.add_runs() = ToProto(open_);
    open_ = {};
  }
  absl::Status Send() {
    if (!writer_.Write(response_)) return absl::CancelledError("the caller has gone");
    response_.Clear();
    sums_ = 0;
    name_bytes_ = 0;
    return absl::OkStatus();
  }

  const uint32_t page_size_bytes_;
  grpc::ServerWriter<v1::MapVersionResponse>& writer_;
  v1::MapVersionResponse response_;
  size_t sums_ = 0;        // in response_
  size_t name_bytes_ = 0;  // in response_
  store::PlacedRun open_;  // the run that may still grow; of no pages: none
};

// Sends the runs of the pages that `request` wants.
absl::Status SendMap(store::VersionReader& reader, const v1::MapVersionRequest& request,
                     grpc::ServerWriter<v1::MapVersionResponse>& writer) {
  const uint64_t first = request.first_page();
  const uint64_t end = request.page_count() == 0 || request.page_count() > UINT64_MAX - first
                           ? UINT64_MAX
                           : first + request.page_count();
  const auto sums = request.checksums() ? store::PageSums::kGive : store::PageSums::kLeaveOut;
  MapSender sender(reader.page_size_bytes(), writer);
  for (uint64_t page = first; page < end;) {
    H5M_ASSIGN_OR_RETURN(std::vector<store::PlacedRun> runs, reader.Locate(page, sums));
    if (runs.empty()) break;
    page = runs.back().page_end();
    for (store::PlacedRun& run : runs) {
      if (run.page >= end) break;
      run.TruncateTo(end);
      H5M_RETURN_IF_ERROR(sender.Take(std::move(run)));
    }
  }
  return sender.Finish();
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
  return RunCall(environment_, *context, "GetVersion", Right::kRead, [&](const Principal&) {
    H5M_RETURN_IF_ERROR(CheckVersion(request->version()));
    H5M_ASSIGN_OR_RETURN(const auto file, OpenToRead(request->name()));
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
  H5M_ASSIGN_OR_RETURN(const auto file, OpenToRead(request.name()));
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
  spdlog::info("tag: file={} version {} has tag {}, which version {} had, by token {}",
               Quoted(request.name()), wanted.version, request.tag(), previous, principal.name);
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
        spdlog::info("untag: file={} version {} lost tag {}, by token {}", Quoted(request->name()),
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

grpc::Status VersionsService::ListChanges(grpc::ServerContext* context,
                                          const v1::ListChangesRequest* request,
                                          grpc::ServerWriter<v1::ListChangesResponse>* writer) {
  return RunCall(environment_, *context, "ListChanges", Right::kRead,
                 [&](const Principal&) { return Changes(*context, *request, *writer); });
}

absl::Status VersionsService::Changes(const grpc::ServerContext& context,
                                      const v1::ListChangesRequest& request,
                                      grpc::ServerWriter<v1::ListChangesResponse>& writer) {
  H5M_RETURN_IF_ERROR(CheckVersion(request.from_version()));
  H5M_RETURN_IF_ERROR(CheckVersion(request.to_version()));
  H5M_ASSIGN_OR_RETURN(const auto file, Open(request.name()));
  H5M_ASSIGN_OR_RETURN(const auto reader,
                       file->OpenChanges(request.from_version(), request.to_version()));
  v1::ListChangesResponse response;
  *response.mutable_from() = ToProto(reader->from());
  *response.mutable_to() = ToProto(reader->to());
  response.set_page_size_bytes(reader->page_size_bytes());
  if (!writer.Write(response)) return absl::CancelledError("the caller has gone");
  std::vector<Extent> ranges;
  for (bool more = true; more;) {
    H5M_ASSIGN_OR_RETURN(more, reader->Next(&ranges));
    response.Clear();
    for (const Extent& range : ranges) {
      v1::ByteRange& added = *response.add_ranges();
      added.set_offset(range.offset);
      added.set_length_bytes(range.length);
    }
    const bool gone = ranges.empty() ? context.IsCancelled() : !writer.Write(response);
    if (gone) return absl::CancelledError("the caller has gone");
  }
  return absl::OkStatus();
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
  environment_.keeper.Grew(request.name());
  if (const auto info = file->Info(); info.ok()) environment_.mirrors.Settle(*info);
  spdlog::info("rollback: file={} to version {} made version {}, by {} (token {})",
               Quoted(request.name()), request.version(), version.version,
               LogValue(request.writer().claimed_user()), principal.name);
  *response.mutable_version() = ToProto(version);
  return absl::OkStatus();
}

}  // namespace h5mirror::server
