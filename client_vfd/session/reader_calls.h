// Calls of readers to their servers, through h5mirror-agent where one runs on this host: whatever
// it cannot do, or does not do in time, is asked of the server at once, in the middle of a range
// too, and the agent is left alone for some seconds. The thread that waits for an
// answer drives its call, on a completion queue of the call's own, and cancels it at the deadline.
// Between two calls nothing is in flight, but for what is read ahead in order, by a thread of its
// own (rpc/read_ahead.h); the channel stays.
//
// Lives on the heap and is never destroyed, as the Engine. Thread-safe.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_READER_CALLS_H_
#define H5MIRROR_CLIENT_VFD_SESSION_READER_CALLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client_vfd/session/reader_server.h"
#include "grpcpp/channel.h"
#include "h5mirror/v1/files.pb.h"
#include "h5mirror/v1/snapshots.pb.h"
#include "h5mirror/v1/versions.pb.h"
#include "rpc/block_cache.h"
#include "rpc/digest_blocks.h"
#include "rpc/read_ahead.h"

namespace h5mirror::vfd {

// Lock order: its mutex before the Engine's.
class ReaderCalls {
 public:
  static ReaderCalls& Get();

  // Each waits at most `timeout` without an answer (300 ms after the server just failed to answer
  // in time), and meanwhile connects again where the connection broke. Errors name the server, and
  // are never the agent's.
  absl::StatusOr<v1::Version> FindVersion(const ReaderServer& server,
                                          const v1::FindVersionRequest& request,
                                          absl::Duration timeout);
  // `timeout` is for each message. Where the connection breaks in the middle, the rest of the range
  // is asked for again; the first message comes again then.
  using Sink = absl::FunctionRef<absl::Status(const v1::ReadVersionResponse&)>;
  // With a `canceller` there is one attempt only, which it ends.
  absl::Status ReadVersion(const ReaderServer& server, v1::ReadVersionRequest request,
                           absl::Duration timeout, Sink sink,
                           rpc::CallCanceller* canceller = nullptr);

  // The same of a cut.
  using SnapshotSink = absl::FunctionRef<absl::Status(const v1::ReadSnapshotResponse&)>;
  absl::Status ReadSnapshot(const ReaderServer& server, v1::ReadSnapshotRequest request,
                            absl::Duration timeout, SnapshotSink sink,
                            rpc::CallCanceller* canceller = nullptr);
  absl::Status CloseSnapshot(const ReaderServer& server, const v1::CloseSnapshotRequest& request,
                             absl::Duration timeout);
  // Always asked of the server. A fork does not wait for it: it is asked again afterwards.
  absl::StatusOr<v1::WaitForCutResponse> WaitForCut(const ReaderServer& server,
                                                    const v1::WaitForCutRequest& request,
                                                    absl::Duration timeout);

  // Files.DigestFile, always asked of the server. `timeout` is for the connection; a message may
  // take 5 s.
  absl::StatusOr<v1::Version> DigestFile(const rpc::ClientOptions& server,
                                         const v1::DigestFileRequest& request,
                                         absl::Duration timeout, rpc::DigestSink sink);

  // The socket of the agent that answers for `server`; empty: there is none, or it has just failed.
  std::string AgentFor(const ReaderServer& server);

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
  // A server or an agent, as calls go to it.
  struct Peer {
    std::shared_ptr<grpc::Channel> channel;
    absl::Time suspect_until = absl::InfinitePast();
  };
  // Where one call goes.
  struct Route {
    rpc::ClientOptions options;
    std::string for_server;  // of an agent: the target that it is to read from
    std::shared_ptr<grpc::Channel> channel;
    ReaderCalls* gives_way_in = nullptr;  // its calls are cancelled by a fork
  };
  // One attempt of a call; sets `*deadline` later whenever something came.
  using Attempt = absl::FunctionRef<absl::Status(const Route& route, absl::Time* deadline)>;
  class Call;

  ReaderCalls() = default;

  // Through the agent, where there is one; else, and where that does not do, to the server.
  absl::Status Run(const ReaderServer& server, absl::Duration timeout, Attempt attempt);
  absl::Status RunAt(Route route, absl::Duration timeout, Attempt attempt);
  // At the agent or else the server, whose state it says nothing of.
  absl::Status RunOnce(const ReaderServer& server, absl::Duration timeout, Attempt attempt);
  // False: there is none, or it failed a moment ago.
  bool FindAgent(const ReaderServer& server, Route* route);
  // One attempt; false: the server is to be asked.
  bool RunAtAgent(Route route, absl::Duration timeout, Attempt attempt);
  absl::Status Begin(Route* route, absl::Duration* timeout);
  // kUnavailable and kDeadlineExceeded: it is not there.
  void End(const Route& route, const absl::Status& status);

  template <typename Service, typename Method, typename Request, typename Response>
  static absl::Status AskOnce(const Route& route, Method begin, const Request& request,
                              absl::Time deadline, Response* response);
  template <typename Service, typename Response, typename Method, typename Request>
  static absl::Status ReadOnce(const Route& route, absl::Duration timeout, Method begin,
                               Request* request, bool* whole, absl::Time* deadline,
                               absl::FunctionRef<absl::Status(const Response&)> sink,
                               rpc::CallCanceller* canceller);

  static absl::Status DigestOnce(const Route& route, absl::Duration timeout,
                                 const v1::DigestFileRequest& request, absl::Time* deadline,
                                 rpc::DigestBlocks& blocks, bool* begun);

  uint64_t ForksBegun();

  absl::Mutex mutex_;
  std::map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  std::weak_ptr<rpc::BlockCache> cache_ ABSL_GUARDED_BY(mutex_);
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  // Of them those that give way to a fork.
  std::set<Call*> waits_ ABSL_GUARDED_BY(mutex_);
  bool forks_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t forks_begun_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_READER_CALLS_H_
