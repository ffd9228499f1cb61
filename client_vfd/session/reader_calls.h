// Calls of readers to their servers, through h5mirror-agent where one runs on this host. If the
// agent fails or is late, the server is asked at once, also in the middle of a range, and the agent
// is left alone for some seconds. In a cluster the server that has the file is asked
// (rpc/server_route.h).
//
// The thread that waits for an answer drives its call, on a completion queue of the call's own, and
// cancels it at the deadline. Between two calls only read-ahead is in flight, by a thread of its
// own (rpc/read_ahead.h). The channel stays.
//
// Lives on the heap and is never destroyed, as the Engine. Thread-safe.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_READER_CALLS_H_
#define H5MIRROR_CLIENT_VFD_SESSION_READER_CALLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client_vfd/session/reader_server.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"
#include "h5mirror/v1/files.pb.h"
#include "h5mirror/v1/mirror.pb.h"
#include "h5mirror/v1/snapshots.pb.h"
#include "h5mirror/v1/versions.pb.h"
#include "rpc/block_cache.h"
#include "rpc/digest_blocks.h"
#include "rpc/read_ahead.h"
#include "rpc/server_route.h"

namespace h5mirror::vfd {

// Lock order: its mutex before the Engine's.
class ReaderCalls {
 public:
  // For a message of an agent; then the server is asked.
  static constexpr absl::Duration kAgentTimeout = absl::Seconds(2);

  // With an agent.
  struct Times {
    absl::Duration agent = kAgentTimeout;
    // A reader may have an agent and no way to the server, which is not tried again for so long.
    absl::Duration not_direct = absl::Minutes(10);
  };

  static ReaderCalls& Get();
  // For tests, with times of their own.
  explicit ReaderCalls(Times times) : times_(times) {}

  // Each waits at most `timeout` without an answer, or 300 ms if the server has just failed to
  // answer in time. Connects again meanwhile if the connection broke. Errors name the server, or
  // all of the cluster that were asked; an error of the agent is never returned.
  absl::StatusOr<v1::Version> FindVersion(const ReaderServer& server,
                                          const v1::FindVersionRequest& request,
                                          absl::Duration timeout);
  // `timeout` is for each message. If the connection breaks in the middle, the rest of the range is
  // asked for again; the first message comes again then.
  using Sink = absl::FunctionRef<absl::Status(const v1::ReadVersionResponse&)>;
  // With a `canceller` there is no retry, and the canceller can end the call.
  absl::Status ReadVersion(const ReaderServer& server, v1::ReadVersionRequest request,
                           absl::Duration timeout, Sink sink,
                           rpc::CallCanceller* canceller = nullptr);

  // As ReadVersion(), for a cut that is no version.
  using SnapshotSink = absl::FunctionRef<absl::Status(const v1::ReadSnapshotResponse&)>;
  absl::Status ReadSnapshot(const ReaderServer& server, v1::ReadSnapshotRequest request,
                            absl::Duration timeout, SnapshotSink sink,
                            rpc::CallCanceller* canceller = nullptr);
  absl::Status CloseSnapshot(const ReaderServer& server, const v1::CloseSnapshotRequest& request,
                             absl::Duration timeout);
  // Goes to the server, never to the agent. A fork does not wait for it: the call is made again.
  absl::StatusOr<v1::WaitForCutResponse> WaitForCut(const ReaderServer& server,
                                                    const v1::WaitForCutRequest& request,
                                                    absl::Duration timeout);

  // Sends a part of another process's cut to the server, in one attempt: if it fails, that process
  // sends the part. `timeout` is for each frame. `next` is not called after SendPart() has
  // returned.
  struct PartOfCut {
    v1::JoinSession join;
    uint64_t bytes = 0;  // of all frames
    // The next frame; unset: there are no more.
    absl::FunctionRef<absl::StatusOr<std::optional<grpc::ByteBuffer>>()> next;
  };
  absl::Status SendPart(const ReaderServer& server, const PartOfCut& part, absl::Duration timeout);

  // Files.DigestFile, at the server, never at the agent. `timeout` is for the connection; a message
  // may take 5 s.
  absl::StatusOr<v1::Version> DigestFile(const rpc::ClientOptions& server,
                                         const v1::DigestFileRequest& request,
                                         absl::Duration timeout, rpc::DigestSink sink);

  // The socket of the agent for `server`; empty: there is none, or it has just failed.
  std::string AgentFor(const ReaderServer& server);
  // Notes that the agent failed to answer in time, so that the next calls skip it.
  void PassByAgent(const ReaderServer& server);

  // The block cache of all readers of the process. Lives as long as one of them is open.
  std::shared_ptr<rpc::BlockCache> Cache(uint64_t capacity_bytes);

  // pthread_atfork, around the Engine's. Waits a short while for calls in flight and lets go of the
  // channels; parent and child connect again at their next call. The mutex is held from
  // PrepareFork() to one of the others. True: gRPC was in use here.
  bool PrepareFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void ParentAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    forks_ = false;
    mutex_.Unlock();
  }
  void ChildAfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // Lets go of the channels if no reader is open.
  void Drain();

 private:
  // A server or an agent: its channel and its recent failures.
  struct Peer {
    std::shared_ptr<grpc::Channel> channel;
    absl::Time suspect_until = absl::InfinitePast();
  };
  // The target of one call.
  struct Route {
    rpc::ClientOptions options;
    std::string for_server = {};  // at an agent: the server that it is to read from
    std::shared_ptr<grpc::Channel> channel = nullptr;
    ReaderCalls* gives_way_in = nullptr;  // set: a fork cancels the call
    // In place of a call at the agent, and in its time: no answer tells nothing of the server.
    bool is_trial = false;
  };
  // One call: the server, or its cluster, and the file.
  struct Target {
    const ReaderServer& server;
    const std::string& name;
    absl::Duration timeout;
    ReaderCalls* gives_way_in = nullptr;  // as in Route; the server may be silent for long, too
    bool is_trial = false;                // as in Route
  };
  // One attempt of a call. Moves `*deadline` when a message comes.
  using Attempt = absl::FunctionRef<absl::Status(const Route& route, absl::Time* deadline)>;
  class Call;

  // One attempt, or two where the credential of the first one has had its time.
  static absl::Status Try(const Route& route, absl::Time* deadline, Attempt attempt);

  // Makes the call at the agent, where there is one; if there is none or it fails, at the server.
  // One that passes by the agent is made at the server before that.
  absl::Status Run(const Target& target, Attempt attempt);
  // Not empty: the call passes by the agent, none of the same token has failed so for a while, and
  // the server is not suspect. For EndTrial(), as the token may change meanwhile.
  std::string TrialKey(const Target& target);
  // Makes such a call, within as little time as at an agent. False: it is none, or it failed.
  bool RunAtServersFirst(const Target& target, Attempt attempt);
  // A trial has failed with `status`: others are left out for a while, or for good.
  void EndTrial(const std::string& key, const absl::Status& status);
  // At the server, or at those of its cluster, one after the other.
  absl::Status RunAtServers(const Target& target, Attempt attempt);
  // The turn of a server in one call. A suspect server gets little time in its first turn, so that
  // the others are asked soon. In a later turn it may be slow.
  enum class Turn { kFirst, kLater };
  // A visit to one server: its time limit, and the part of it for connecting.
  struct Visit {
    Route route;
    absl::Duration timeout;
    absl::Duration connect;
    bool has_others;
    Turn turn;
  };
  // Tries again until `*deadline`, unless there are others to ask.
  absl::Status RunAt(Visit visit, absl::Time* deadline, Attempt attempt);
  absl::Status TryUntil(const Route& route, bool has_others, absl::Time* deadline, Attempt attempt);
  // As RunAt(), in one attempt, and without a note about the server's state.
  absl::Status RunOnce(const Target& target, Attempt attempt);
  // Finds the agent for `server`. False: there is none, or it failed a moment ago.
  bool FindAgent(const ReaderServer& server, Route* route);
  // One attempt at the agent. False: ask the server.
  bool RunAtAgent(Route route, absl::Duration timeout, Attempt attempt);
  absl::Status Begin(Route* route, absl::Duration* timeout, Turn turn = Turn::kFirst);
  rpc::ServerRoute RouteTo(const Target& target);
  // Notes the result of a call. kUnavailable, kDeadlineExceeded: the peer is away, unless it named
  // another one, or the call is a trial.
  void End(const Route& route, const absl::Status& status);

  template <typename Service, typename Method, typename Request, typename Response>
  static absl::Status AskOnce(const Route& route, Method begin, const Request& request,
                              absl::Time deadline, Response* response);
  template <typename Service, typename Response, typename Method, typename Request>
  static absl::Status ReadOnce(const Route& route, absl::Duration timeout, Method begin,
                               Request* request, bool* whole, absl::Time* deadline,
                               absl::FunctionRef<absl::Status(const Response&)> sink,
                               rpc::CallCanceller* canceller);

  static absl::Status SendPartOnce(const Route& route, absl::Duration timeout,
                                   const PartOfCut& part, absl::Time* deadline);
  static absl::Status DigestOnce(const Route& route, absl::Duration timeout,
                                 const v1::DigestFileRequest& request, absl::Time* deadline,
                                 rpc::DigestBlocks& blocks, bool* begun);

  uint64_t ForksBegun();

  const Times times_;
  absl::Mutex mutex_;
  std::map<std::string, Peer> peers_ ABSL_GUARDED_BY(mutex_);
  rpc::OwnerCache owners_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, absl::Time> not_direct_until_ ABSL_GUARDED_BY(mutex_);  // by TrialKey()
  std::weak_ptr<rpc::BlockCache> cache_ ABSL_GUARDED_BY(mutex_);
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  // The calls in flight that a fork cancels.
  std::set<Call*> waits_ ABSL_GUARDED_BY(mutex_);
  bool forks_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t forks_begun_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_READER_CALLS_H_
