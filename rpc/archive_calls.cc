#include "rpc/archive_calls.h"

#include <memory>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "grpcpp/grpcpp.h"
#include "h5mirror/v1/archive.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/mirror_stream.h"
#include "rpc/status.h"
#include "rpc/texts.h"

namespace h5mirror::rpc {

absl::Status ArchiveHistory(
    const ClientOptions& options, const v1::ArchiveHistoryRequest& request,
    absl::FunctionRef<absl::Status(const v1::ArchiveHistoryResponse&)> sink) {
  H5M_RETURN_IF_ERROR(CheckTexts(request));
  const auto stub = v1::Archive::NewStub(MakeChannel(options));
  grpc::ClientContext context;
  Authorize(options, context);
  const auto reader = stub->ArchiveHistory(&context, request);
  absl::Status sunk;
  v1::ArchiveHistoryResponse response;
  while (reader->Read(&response)) {
    // After a failed sink the rest is only read to reach the end of the cancelled stream.
    if (!sunk.ok()) continue;
    sunk = sink(response);
    if (!sunk.ok()) context.TryCancel();
  }
  const absl::Status status = NameServer(options, FromGrpc(reader->Finish()));
  return sunk.ok() ? status : sunk;
}

absl::StatusOr<v1::GetArchiveResponse> GetArchive(const ClientOptions& options,
                                                  const std::string& name, absl::Duration timeout) {
  v1::GetArchiveRequest request;
  request.set_name(name);
  H5M_RETURN_IF_ERROR(CheckTexts(request));
  const auto stub = v1::Archive::NewStub(MakeChannel(options));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  Authorize(options, context);
  v1::GetArchiveResponse response;
  const absl::Status status = FromGrpc(stub->GetArchive(&context, request, &response));
  if (!status.ok()) return NameServer(options, status);
  return response;
}

}  // namespace h5mirror::rpc
