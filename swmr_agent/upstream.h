// One server that the agent reads from.
#ifndef H5MIRROR_SWMR_AGENT_UPSTREAM_H_
#define H5MIRROR_SWMR_AGENT_UPSTREAM_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "h5mirror/v1/agents.grpc.pb.h"
#include "rpc/client.h"

namespace h5mirror::agent {

// Connects when it is first wanted, and again by itself. Thread-safe.
class Upstream {
 public:
  explicit Upstream(rpc::ClientOptions options) : options_(std::move(options)) {}
  // Over a client that is there; for tests.
  explicit Upstream(std::unique_ptr<rpc::Client> client) : client_(std::move(client)) {}

  const rpc::ClientOptions& options() const { return options_; }
  // Lives as long as this does. kUnavailable: there is no connection yet, and none came about.
  absl::StatusOr<rpc::Client*> client();
  // Asks the server, and waits for a second at most; once more if a credential of munge has had its
  // time. Errors: those of the call; kUnavailable, kDeadlineExceeded.
  absl::StatusOr<v1::CheckReaderResponse> CheckReader(const v1::CheckReaderRequest& request);

 private:
  // One attempt; `shown` is the credential that it showed.
  absl::StatusOr<v1::CheckReaderResponse> Ask(v1::Agents::Stub& stub,
                                              const v1::CheckReaderRequest& request,
                                              std::string& shown);

  const rpc::ClientOptions options_;
  absl::Mutex agents_mutex_;  // a leaf
  std::unique_ptr<v1::Agents::Stub> agents_ ABSL_GUARDED_BY(agents_mutex_);
  absl::Mutex mutex_;
  std::unique_ptr<rpc::Client> client_ ABSL_GUARDED_BY(mutex_);
  // The last try was in vain, and is the answer until then.
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  absl::Time failed_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_UPSTREAM_H_
