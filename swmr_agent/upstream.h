// One server that the agent reads from, or a cluster: each file is read from the server that has
// it. Files of one server share its connection (rpc/cluster_client.h).
#ifndef H5MIRROR_SWMR_AGENT_UPSTREAM_H_
#define H5MIRROR_SWMR_AGENT_UPSTREAM_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "h5mirror/v1/agents.grpc.pb.h"
#include "rpc/client.h"
#include "rpc/server_route.h"

namespace h5mirror::agent {

// Readers wait for it, and may go to the server themselves. All servers of a cluster together get
// these times.
struct UpstreamTimes {
  absl::Duration connect = absl::Seconds(1);
  absl::Duration check = absl::Seconds(1);  // of CheckReader()
  std::function<void(absl::Duration)> sleep = absl::SleepFor;
};

// Connects when it is first wanted, and again by itself. Thread-safe.
class Upstream {
 public:
  explicit Upstream(rpc::ClientOptions options, UpstreamTimes times = {})
      : options_(std::move(options)), times_(std::move(times)) {}
  // Over a client that is there; for tests.
  explicit Upstream(std::unique_ptr<rpc::Client> client) : client_(std::move(client)) {}

  const rpc::ClientOptions& options() const { return options_; }
  // Whether a reader means this one by `target`, as gRPC has it.
  bool Has(std::string_view target) const;
  // Lives as long as this does. kUnavailable: there is no connection yet, and none came about.
  absl::StatusOr<rpc::Client*> client();
  // Asks the server that has the file, and waits for a second at most; once more if a credential of
  // munge has had its time. Errors: those of the call; kUnavailable, kDeadlineExceeded.
  absl::StatusOr<v1::CheckReaderResponse> CheckReader(const v1::CheckReaderRequest& request);

 private:
  using Agents = std::shared_ptr<v1::Agents::Stub>;
  static constexpr size_t kStubsMax = 16;  // each has a connection

  Agents AgentsAt(const rpc::ClientOptions& server);
  // One attempt; `shown` is the credential that it showed.
  static absl::StatusOr<v1::CheckReaderResponse> Ask(const rpc::ClientOptions& server,
                                                     v1::Agents::Stub& stub,
                                                     const v1::CheckReaderRequest& request,
                                                     absl::Time deadline, std::string& shown);

  const rpc::ClientOptions options_;
  const UpstreamTimes times_;
  absl::Mutex agents_mutex_;                                             // a leaf
  std::map<std::string, Agents> agents_ ABSL_GUARDED_BY(agents_mutex_);  // by target
  rpc::OwnerCache owners_ ABSL_GUARDED_BY(agents_mutex_);
  absl::Mutex mutex_;
  std::unique_ptr<rpc::Client> client_ ABSL_GUARDED_BY(mutex_);
  // The last try was in vain, and is the answer until then.
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  absl::Time failed_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace h5mirror::agent

#endif  // H5MIRROR_SWMR_AGENT_UPSTREAM_H_
