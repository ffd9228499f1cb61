#include "swmr_agent/upstream.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "grpcpp/client_context.h"
#include "rpc/channel.h"
#include "rpc/reading_channel.h"
#include "rpc/status.h"

namespace h5mirror::agent {
namespace {

// The part of the time for one of several servers' first answer.
constexpr int kCheckParts = 3;

}  // namespace

absl::StatusOr<rpc::Client*> Upstream::client() {
  absl::MutexLock lock(&mutex_);
  if (client_ != nullptr) return client_.get();
  if (absl::Now() < failed_until_) return failed_;
  absl::StatusOr<std::unique_ptr<rpc::Client>> client =
      rpc::ConnectToRead(options_, times_.connect);
  if (!client.ok()) {
    failed_ = client.status();
    failed_until_ = absl::Now() + times_.connect;
    return failed_;
  }
  client_ = *std::move(client);
  return client_.get();
}

bool Upstream::Has(std::string_view target) const {
  const auto is_it = [&](const rpc::ServerAddress& other) { return other.target == target; };
  return options_.target == target ||
         std::any_of(options_.others.begin(), options_.others.end(), is_it);
}

Upstream::Agents Upstream::AgentsAt(const rpc::ClientOptions& server) {
  absl::MutexLock lock(&agents_mutex_);
  if (agents_.size() == kStubsMax && !agents_.contains(server.target)) agents_.clear();
  Agents& agents = agents_[server.target];
  if (agents == nullptr) agents = v1::Agents::NewStub(rpc::MakeChannel(server));
  return agents;
}

absl::StatusOr<v1::CheckReaderResponse> Upstream::CheckReader(
    const v1::CheckReaderRequest& request) {
  const absl::Time deadline = absl::Now() + times_.check;
  agents_mutex_.Lock();
  rpc::ServerWalk walk(options_, owners_.Find(options_, request.name()), deadline);
  agents_mutex_.Unlock();
  for (;;) {
    const rpc::ClientOptions server = walk.Server();
    const Agents stub = AgentsAt(server);
    const absl::Time now = absl::Now();
    const absl::Time until = now + walk.Limit(times_.check / kCheckParts, now);
    std::string shown;
    absl::StatusOr<v1::CheckReaderResponse> answer = Ask(server, *stub, request, until, shown);
    if (rpc::RenewCredential(server, shown, answer.status())) {
      answer = Ask(server, *stub, request, until, shown);
    }
    {
      absl::MutexLock lock(&agents_mutex_);
      owners_.OnEnd(options_, server, answer.status());
    }
    const std::optional<absl::Duration> pause = walk.Next(answer.status(), absl::Now());
    if (answer.ok()) return answer;
    if (!pause) return walk.error();
    times_.sleep(*pause);
  }
}

absl::StatusOr<v1::CheckReaderResponse> Upstream::Ask(const rpc::ClientOptions& server,
                                                      v1::Agents::Stub& stub,
                                                      const v1::CheckReaderRequest& request,
                                                      absl::Time deadline, std::string& shown) {
  grpc::ClientContext context;
  shown = rpc::Authorize(server, context);
  // The first call comes before there is a connection.
  context.set_wait_for_ready(true);
  context.set_deadline(absl::ToChronoTime(deadline));
  v1::CheckReaderResponse response;
  const grpc::Status status = stub.CheckReader(&context, request, &response);
  if (!status.ok()) return rpc::FromServer(status);
  return response;
}

}  // namespace h5mirror::agent
