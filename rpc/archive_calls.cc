#include "rpc/archive_calls.h"

#include <memory>
#include <optional>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "grpcpp/grpcpp.h"
#include "h5mirror/v1/archive.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/elsewhere.h"
#include "rpc/grpc_threads.h"
#include "rpc/mirror_stream.h"
#include "rpc/server_route.h"
#include "rpc/status.h"
#include "rpc/texts.h"

namespace h5mirror::rpc {

namespace {

// For finding the server that has the file, where servers change.
constexpr absl::Duration kFindOwner = absl::Seconds(30);

// True: ask another server of the cluster, because this one has done nothing yet.
bool IsForAnother(const ClientOptions& options, bool has_begun, const absl::Status& status) {
  if (has_begun) return false;
  if (ElsewhereOf(status).has_value() || IsNobodyServes(status)) return true;
  return absl::IsUnavailable(status) && !options.others.empty();
}

// Makes the call at the server that has the file. `call` sets `has_begun` once that has answered.
absl::Status AtOwner(const ClientOptions& options, bool* has_begun,
                     absl::FunctionRef<absl::Status(const ClientOptions& server)> call) {
  ServerWalk walk(options, ServerRoute(), absl::Now() + kFindOwner);
  for (;;) {
    const absl::Status status = call(walk.Server());
    if (!IsForAnother(options, *has_begun, status)) return status;
    const std::optional<absl::Duration> pause = walk.Next(status, absl::Now());
    if (!pause) return walk.error();
    absl::SleepFor(*pause);
  }
}

}  // namespace

absl::Status ArchiveHistory(
    const ClientOptions& options, const v1::ArchiveHistoryRequest& request,
    absl::FunctionRef<absl::Status(const v1::ArchiveHistoryResponse&)> sink) {
  H5M_RETURN_IF_ERROR(CheckTexts(request));
  bool has_begun = false;
  return AtOwner(options, &has_begun, [&](const ClientOptions& server) {
    H5M_RETURN_IF_ERROR(CheckGrpcThreads());
    const auto stub = v1::Archive::NewStub(MakeChannel(server));
    grpc::ClientContext context;
    Authorize(server, context);
    const auto reader = stub->ArchiveHistory(&context, request);
    absl::Status sunk;
    v1::ArchiveHistoryResponse response;
    while (reader->Read(&response)) {
      has_begun = true;
      // After a failed sink the rest is only read to reach the end of the cancelled stream.
      if (!sunk.ok()) continue;
      sunk = sink(response);
      if (!sunk.ok()) context.TryCancel();
    }
    const absl::Status status = NameServer(server, FromServer(reader->Finish()));
    return sunk.ok() ? status : sunk;
  });
}

absl::StatusOr<v1::GetArchiveResponse> GetArchive(const ClientOptions& options,
                                                  const std::string& name, absl::Duration timeout) {
  v1::GetArchiveRequest request;
  request.set_name(name);
  H5M_RETURN_IF_ERROR(CheckTexts(request));
  v1::GetArchiveResponse response;
  // Without a file it is a question to one server.
  bool has_begun = name.empty();
  const absl::Status status =
      AtOwner(options, &has_begun, [&](const ClientOptions& server) -> absl::Status {
        H5M_RETURN_IF_ERROR(CheckGrpcThreads());
        const auto stub = v1::Archive::NewStub(MakeChannel(server));
        grpc::ClientContext context;
        context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));
        Authorize(server, context);
        response.Clear();
        return NameServer(server, FromServer(stub->GetArchive(&context, request, &response)));
      });
  if (!status.ok()) return status;
  return response;
}

}  // namespace h5mirror::rpc
