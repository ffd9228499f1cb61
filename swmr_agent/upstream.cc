#include "swmr_agent/upstream.h"

#include <utility>

#include "absl/time/clock.h"
#include "grpcpp/client_context.h"
#include "rpc/channel.h"
#include "rpc/reading_channel.h"
#include "rpc/status.h"

namespace h5mirror::agent {
namespace {

// Readers wait for it, and may go to the server themselves.
constexpr absl::Duration kConnectWait = absl::Seconds(1);
constexpr absl::Duration kCheckWait = absl::Seconds(1);

}  // namespace

absl::StatusOr<rpc::Client*> Upstream::client() {
  absl::MutexLock lock(&mutex_);
  if (client_ != nullptr) return client_.get();
  if (absl::Now() < failed_until_) return failed_;
  absl::StatusOr<std::unique_ptr<rpc::Client>> client = rpc::ConnectToRead(options_, kConnectWait);
  if (!client.ok()) {
    failed_ = client.status();
    failed_until_ = absl::Now() + kConnectWait;
    return failed_;
  }
  client_ = *std::move(client);
  return client_.get();
}

absl::StatusOr<v1::CheckReaderResponse> Upstream::CheckReader(
    const v1::CheckReaderRequest& request) {
  v1::Agents::Stub* stub;
  {
    absl::MutexLock lock(&agents_mutex_);
    if (agents_ == nullptr) agents_ = v1::Agents::NewStub(rpc::MakeChannel(options_));
    stub = agents_.get();
  }
  std::string shown;
  absl::StatusOr<v1::CheckReaderResponse> answer = Ask(*stub, request, shown);
  if (!rpc::RenewCredential(options_, shown, answer.status())) return answer;
  return Ask(*stub, request, shown);
}

absl::StatusOr<v1::CheckReaderResponse> Upstream::Ask(v1::Agents::Stub& stub,
                                                      const v1::CheckReaderRequest& request,
                                                      std::string& shown) {
  grpc::ClientContext context;
  shown = rpc::Authorize(options_, context);
  // The first call comes before there is a connection.
  context.set_wait_for_ready(true);
  context.set_deadline(absl::ToChronoTime(absl::Now() + kCheckWait));
  v1::CheckReaderResponse response;
  const grpc::Status status = stub.CheckReader(&context, request, &response);
  if (!status.ok()) return rpc::FromGrpc(status);
  return response;
}

}  // namespace h5mirror::agent
