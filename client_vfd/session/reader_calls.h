// Calls of readers to their servers. A reader has no thread of its own: the thread that waits for
// an answer drives its call, on a completion queue of the call's own, and cancels it at the
// deadline. Between two calls nothing is in flight; the channel stays.
//
// Lives on the heap and is never destroyed, as the Engine. Thread-safe.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_READER_CALLS_H_
#define H5MIRROR_CLIENT_VFD_SESSION_READER_CALLS_H_

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "h5mirror/v1/snapshots.pb.h"
#include "h5mirror/v1/versions.pb.h"
#include "rpc/block_cache.h"
#include "rpc/client_options.h"

namespace h5mirror::vfd {

// Lock order: its mutex before the Engine's.
class ReaderCalls {
 public:
  static ReaderCalls& Get();

  // Each waits at most `timeout` without an answer (300 ms after the server just failed to answer
  // in time), and meanwhile connects again where the connection broke. Errors name the server.
  absl::StatusOr<v1::Version> FindVersion(const rpc::ClientOptions& options,
                                          const v1::FindVersionRequest& request,
                                          absl::Duration timeout);
  // `timeout` is for each message. Where the connection breaks in the middle, the rest of the range
  // is asked for again; the first message comes again then.
  using Sink = absl::FunctionRef<absl::Status(const v1::ReadVersionResponse&)>;
  absl::Status ReadVersion(const rpc::ClientOptions& options, v1::ReadVersionRequest request,
                           absl::Duration timeout, Sink sink);

  // The same of a cut.
  using SnapshotSink = absl::FunctionRef<absl::Status(const v1::ReadSnapshotResponse&)>;
  absl::Status ReadSnapshot(const rpc::ClientOptions& options, v1::ReadSnapshotRequest request,
                            absl::Duration timeout, SnapshotSink sink);
  absl::Status CloseSnapshot(const rpc::ClientOptions& options,
                             const v1::CloseSnapshotRequest& request, absl::Duration timeout);
  absl::StatusOr<v1::WaitForCutResponse> WaitForCut(const rpc::ClientOptions& options,
                                                    const v1::WaitForCutRequest& request,
                                                    absl::Duration timeout);

  // What all readers of the process keep blocks in, as long as one of them is open.
  std::shared_ptr<rpc::BlockCache> Cache(uint64_t capacity_bytes);

  // pthread_atfork, around the Engine's. Waits for calls in flight (for a short while) and lets go
  // of the channels; both sides connect again at their next call. The mutex is held from the first
  // to one of the others. True: gRPC was in use here.
  bool PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ChildAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // Lets go of the channels if no reader is open.
  void Drain();

 private:
  struct Server {
    std::shared_ptr<grpc::Channel> channel;
    absl::Time suspect_until = absl::InfinitePast();
  };
  // One attempt of a call; sets `*deadline` later whenever something came.
  using Attempt = absl::FunctionRef<absl::Status(const std::shared_ptr<grpc::Channel>& channel,
                                                 absl::Time* deadline)>;

  ReaderCalls() = default;

  absl::Status Run(const rpc::ClientOptions& options, absl::Duration timeout, Attempt attempt);
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Begin(const rpc::ClientOptions& options,
                                                       absl::Duration* timeout);
  void End(const rpc::ClientOptions& options, const absl::Status& status);

  absl::Mutex mutex_;
  std::map<std::string, Server> servers_ ABSL_GUARDED_BY(mutex_);
  std::weak_ptr<rpc::BlockCache> cache_ ABSL_GUARDED_BY(mutex_);
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_READER_CALLS_H_
