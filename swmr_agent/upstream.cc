#include "swmr_agent/upstream.h"

#include <utility>

#include "absl/time/clock.h"

namespace h5mirror::agent {
namespace {

// Readers wait for it, and may go to the server themselves.
constexpr absl::Duration kConnectWait = absl::Seconds(1);

}  // namespace

absl::StatusOr<rpc::Client*> Upstream::client() {
  absl::MutexLock lock(&mutex_);
  if (client_ != nullptr) return client_.get();
  if (absl::Now() < failed_until_) return failed_;
  absl::StatusOr<std::unique_ptr<rpc::Client>> client =
      rpc::Client::Connect(options_, kConnectWait);
  if (!client.ok()) {
    failed_ = client.status();
    failed_until_ = absl::Now() + kConnectWait;
    return failed_;
  }
  client_ = *std::move(client);
  return client_.get();
}

}  // namespace h5mirror::agent
