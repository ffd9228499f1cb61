#include "server/files_service.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "server/convert.h"
#include "xxhash.h"

namespace h5mirror::server {
namespace {

constexpr int kFilesDefault = 1000;
constexpr int kFilesMax = 10000;
constexpr uint32_t kBlockDefault = 1 << 20;
constexpr uint32_t kBlockMax = 16 << 20;
// Digests of one message: 1024 blocks.
constexpr size_t kDigestBytesMax = 16384;

absl::Status CheckDirectory(const std::string& directory) {
  return directory.empty() ? absl::OkStatus() : store::CheckName(directory);
}

// Waits until the head holds the newest durable cut, in slices, so that a caller who has gone
// and a server that stops are noticed.
absl::Status Settle(const grpc::ServerContext& context, store::File& file) {
  for (;;) {
    const absl::Status status = file.WaitApplied(absl::Milliseconds(200));
    if (!absl::IsDeadlineExceeded(status)) return status;
    if (context.IsCancelled()) return absl::CancelledError("the caller has gone");
    if (std::chrono::system_clock::now() >= context.deadline()) return status;
  }
}

absl::StatusOr<uint32_t> BlockSize(uint32_t wanted) {
  if (wanted == 0) return kBlockDefault;
  if (wanted < 4096 || wanted > kBlockMax || (wanted & (wanted - 1)) != 0) {
    return absl::InvalidArgumentError(
        StrCat("block_size_bytes ", wanted, ": a power of two in 4096..16777216, or 0"));
  }
  return wanted;
}

void AppendDigest(absl::Span<const char> block, std::string& digests) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(block.data(), block.size()));
  digests.append(reinterpret_cast<const char*>(canonical.digest), sizeof(canonical.digest));
}

}  // namespace

grpc::Status FilesService::ListFiles(grpc::ServerContext* context,
                                     const v1::ListFilesRequest* request,
                                     v1::ListFilesResponse* response) {
  return RunCall(environment_, *context, "ListFiles", Right::kRead,
                 [&](const Principal&) { return List(*request, *response); });
}

absl::Status FilesService::List(const v1::ListFilesRequest& request,
                                v1::ListFilesResponse& response) {
  H5M_RETURN_IF_ERROR(CheckDirectory(request.directory()));
  if (!request.page_token().empty() && !store::CheckName(request.page_token()).ok()) {
    return absl::InvalidArgumentError("page_token is none of this server's");
  }
  if (request.page_size() < 0) {
    return absl::InvalidArgumentError(StrCat("page_size ", request.page_size(), " is negative"));
  }
  const int limit =
      request.page_size() == 0 ? kFilesDefault : std::min(request.page_size(), kFilesMax);
  // One more than asked for tells whether there is a next page.
  H5M_ASSIGN_OR_RETURN(auto files,
                       environment_.store.List(request.directory(), request.page_token(),
                                               static_cast<size_t>(limit) + 1));
  if (files.size() > static_cast<size_t>(limit)) {
    files.resize(static_cast<size_t>(limit));
    response.set_next_page_token(files.back().name);
  }
  for (const store::FileSummary& file : files) {
    v1::FileSummary& summary = *response.add_files();
    summary.set_name(file.name);
    summary.set_size_bytes(static_cast<int64_t>(file.size_bytes));
    *summary.mutable_modify_time() = ToProto(file.modify_time);
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::FileStatus> FilesService::StatusOf(store::File& file) {
  H5M_ASSIGN_OR_RETURN(const store::FileInfo info, file.Info());
  return ToProto(file.name(), info, environment_.leases.HolderOf(file.name()));
}

grpc::Status FilesService::GetFile(grpc::ServerContext* context, const v1::GetFileRequest* request,
                                   v1::GetFileResponse* response) {
  return RunCall(environment_, *context, "GetFile", Right::kRead,
                 [&](const Principal&) { return Get(*context, *request, *response); });
}

absl::Status FilesService::Get(const grpc::ServerContext& context,
                               const v1::GetFileRequest& request, v1::GetFileResponse& response) {
  H5M_RETURN_IF_ERROR(store::CheckName(request.name()));
  H5M_ASSIGN_OR_RETURN(const std::shared_ptr<store::File> file,
                       environment_.store.OpenFile(request.name()));
  if (request.settle()) H5M_RETURN_IF_ERROR(Settle(context, *file));
  H5M_ASSIGN_OR_RETURN(*response.mutable_file(), StatusOf(*file));
  return absl::OkStatus();
}

grpc::Status FilesService::DigestFile(grpc::ServerContext* context,
                                      const v1::DigestFileRequest* request,
                                      grpc::ServerWriter<v1::DigestFileResponse>* writer) {
  return RunCall(environment_, *context, "DigestFile", Right::kRead,
                 [&](const Principal&) { return Digest(*request, *writer); });
}

absl::Status FilesService::Digest(const v1::DigestFileRequest& request,
                                  grpc::ServerWriter<v1::DigestFileResponse>& writer) {
  H5M_RETURN_IF_ERROR(store::CheckName(request.name()));
  H5M_ASSIGN_OR_RETURN(const uint32_t block_size, BlockSize(request.block_size_bytes()));
  H5M_ASSIGN_OR_RETURN(const std::shared_ptr<store::File> file,
                       environment_.store.OpenFile(request.name()));
  H5M_ASSIGN_OR_RETURN(const auto reader, file->OpenVersion(0));
  v1::DigestFileResponse response;
  *response.mutable_version() = ToProto(reader->info());
  if (!writer.Write(response)) return absl::CancelledError("the caller has gone");
  response.Clear();
  const uint64_t size = reader->info().size_bytes;
  std::vector<char> block(std::min<uint64_t>(block_size, std::max<uint64_t>(size, 1)));
  for (uint64_t offset = 0; offset < size; offset += block_size) {
    const absl::Span<char> bytes(block.data(), std::min<uint64_t>(block_size, size - offset));
    H5M_RETURN_IF_ERROR(reader->Read(offset, bytes));
    AppendDigest(bytes, *response.mutable_digests());
    const bool is_last = offset + bytes.size() == size;
    if (is_last || response.digests().size() >= kDigestBytesMax) {
      if (!writer.Write(response)) return absl::CancelledError("the caller has gone");
      response.Clear();
    }
  }
  return absl::OkStatus();
}

grpc::Status FilesService::AdoptFile(grpc::ServerContext* context,
                                     const v1::AdoptFileRequest* request,
                                     v1::AdoptFileResponse* response) {
  return RunCall(
      environment_, *context, "AdoptFile", Right::kAdmin, [&](const Principal& principal) {
        H5M_RETURN_IF_ERROR(store::CheckName(request->name()));
        H5M_RETURN_IF_ERROR(CheckOrigin(request->origin()));
        H5M_ASSIGN_OR_RETURN(const std::shared_ptr<store::File> file,
                             environment_.store.OpenFile(request->name()));
        H5M_ASSIGN_OR_RETURN(const CallLease lease,
                             CallLease::Take(environment_, request->name(), principal, *context,
                                             CallLease::Writer::kRespect));
        H5M_RETURN_IF_ERROR(file->SetOrigin(request->version(), FromProto(request->origin()),
                                            FromProto(request->local())));
        H5M_ASSIGN_OR_RETURN(*response->mutable_file(), StatusOf(*file));
        response->mutable_file()->clear_lease();  // The one of this call.
        return absl::OkStatus();
      });
}

}  // namespace h5mirror::server
