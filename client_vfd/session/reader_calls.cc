#include "client_vfd/session/reader_calls.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client_vfd/session/call_ends.h"
#include "client_vfd/session/engine.h"
#include "client_vfd/session/token_reader.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/support/async_stream.h"
#include "grpcpp/support/async_unary_call.h"
#include "h5mirror/v1/files.grpc.pb.h"
#include "h5mirror/v1/snapshots.grpc.pb.h"
#include "h5mirror/v1/versions.grpc.pb.h"
#include "rpc/agent_socket.h"
#include "rpc/channel.h"
#include "rpc/frame_codec.h"
#include "rpc/mirror_stream.h"
#include "rpc/reading_channel.h"
#include "rpc/status.h"

namespace h5mirror::vfd {
namespace {

// For a server that has just been waited for in vain.
constexpr absl::Duration kSuspectTimeout = absl::Milliseconds(300);
// For a message of digests of a file that the server reads from a slow disk.
constexpr absl::Duration kDigestTimeout = absl::Seconds(5);

constexpr char kMirrorFile[] = "/h5mirror.v1.Mirror/MirrorFile";
// The bytes that may still be in flight after the last frame of a part was taken: the windows of
// gRPC and TCP.
constexpr uint64_t kInFlightBytes = 32 << 20;

// For the answer to a part of `bytes`, whose frames were taken within `took`: the rest must flow,
// at a quarter of that rate.
absl::Duration AnswerTimeout(uint64_t bytes, absl::Duration took, absl::Duration timeout) {
  if (bytes == 0) return timeout;
  const double rest = static_cast<double>(std::min(bytes, kInFlightBytes));
  return timeout + took * (4 * rest / static_cast<double>(bytes));
}

absl::Status Late() { return absl::DeadlineExceededError("no answer"); }

}  // namespace

// One call and the queue that it is driven on. After the destructor no operation is in flight.
class ReaderCalls::Call {
 public:
  explicit Call(const Route& route) : gives_way_in_(route.gives_way_in) {
    rpc::Authorize(route.options, context_);
    if (!route.for_server.empty()) context_.AddMetadata(rpc::kAgentServerKey, route.for_server);
    if (gives_way_in_ == nullptr) return;
    absl::MutexLock lock(&gives_way_in_->mutex_);
    gives_way_in_->waits_.insert(this);
    if (gives_way_in_->forks_) Cancel();
  }
  ~Call() {
    if (gives_way_in_ != nullptr) {
      absl::MutexLock lock(&gives_way_in_->mutex_);
      gives_way_in_->waits_.erase(this);
    }
    queue_.Shutdown();
    void* tag;
    bool ok;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  enum class Event { kOk, kNotOk, kLate };
  // Waits for the one operation in flight; cancels the call at the deadline.
  Event Wait(absl::Time deadline) {
    void* tag;
    bool ok = false;
    if (queue_.AsyncNext(&tag, &ok, absl::ToChronoTime(deadline)) ==
        grpc::CompletionQueue::GOT_EVENT) {
      return ok ? Event::kOk : Event::kNotOk;
    }
    Cancel();  // Then the operation ends without the server.
    queue_.Next(&tag, &ok);
    return Event::kLate;
  }

  // Hands each message of a stream that has begun to `take`, until one is not taken. `take` may
  // move the deadline; `timeout` is for the stream's end.
  template <typename Response, typename Stream>
  absl::Status ReadAll(Stream& stream, absl::Duration timeout, const absl::Time* deadline,
                       absl::FunctionRef<absl::Status(const Response&)> take) {
    Response answer;
    absl::Status taken;
    Event event = Wait(*deadline);
    while (event == Event::kOk && taken.ok()) {
      stream.Read(&answer, tag());
      event = Wait(*deadline);
      if (event == Event::kOk) taken = take(answer);
    }
    if (!taken.ok()) Cancel();
    grpc::Status status;
    stream.Finish(&status, tag());
    const bool finished = Wait(absl::Now() + timeout) != Event::kLate;
    if (!taken.ok()) return taken;
    return event == Event::kLate || !finished ? Late() : Ended(status);
  }

  // Thread-safe.
  void Cancel() {
    is_cancelled_ = true;
    context_.TryCancel();
  }
  // Why the call ended. A server that ends cancels the calls in hand: it is a lost one then.
  absl::Status Ended(const grpc::Status& status) const {
    return is_cancelled_ ? rpc::FromGrpc(status) : rpc::FromServer(status);
  }

  // The messages of a part, and the half-close. `timeout` is for each. `read` fails where a frame
  // could not be made; the call goes on then.
  template <typename Stream>
  Event WritePart(Stream& stream, const PartOfCut& part, absl::Duration timeout,
                  absl::Status* read) {
    v1::MirrorFileRequest first;
    *first.mutable_join() = part.join;
    absl::StatusOr<std::optional<grpc::ByteBuffer>> frame = rpc::EncodeRequest(first);
    while (frame.ok() && frame->has_value()) {
      stream.Write(**frame, tag());
      const Event event = Wait(absl::Now() + timeout);
      if (event != Event::kOk) return event;
      frame = part.next();
    }
    *read = frame.status();
    if (!read->ok()) return Event::kOk;
    stream.WritesDone(tag());
    return Wait(absl::Now() + timeout);
  }

  // Reads the server's answer to a part. A server that limits the stream's bandwidth sends signs of
  // life first; each of these gives the answer another `timeout`.
  template <typename Stream>
  Event ReadAnswer(Stream& stream, absl::Time deadline, absl::Duration timeout,
                   v1::MirrorFileResponse* answer) {
    while (true) {
      grpc::ByteBuffer message;
      stream.Read(&message, tag());
      const Event event = Wait(deadline);
      if (event != Event::kOk) return event;
      answer->Clear();
      const bool is_sign =
          grpc::SerializationTraits<v1::MirrorFileResponse>::Deserialize(&message, answer).ok() &&
          answer->response_case() == v1::MirrorFileResponse::RESPONSE_NOT_SET;
      if (!is_sign) return event;
      deadline = std::max(deadline, absl::Now() + timeout);
    }
  }

  grpc::ClientContext& context() { return context_; }
  grpc::CompletionQueue& queue() { return queue_; }
  void* tag() { return this; }

 private:
  ReaderCalls* const gives_way_in_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::atomic<bool> is_cancelled_ = false;
};

// `begin` starts the call: a method Async...() of the service's stub.
template <typename Service, typename Method, typename Request, typename Response>
absl::Status ReaderCalls::AskOnce(const Route& route, Method begin, const Request& request,
                                  absl::Time deadline, Response* response) {
  const auto stub = Service::NewStub(route.channel);
  grpc::Status status;  // Outlives the call, which writes it.
  Call call(route);
  const auto reader = (stub.get()->*begin)(&call.context(), request, &call.queue());
  reader->Finish(response, &status, call.tag());
  if (call.Wait(deadline) == Call::Event::kLate) return Late();
  return call.Ended(status);
}

// `request` is moved on past what came, so that it can be repeated unless it came whole.
template <typename Service, typename Response, typename Method, typename Request>
absl::Status ReaderCalls::ReadOnce(const Route& route, absl::Duration timeout, Method begin,
                                   Request* request, bool* whole, absl::Time* deadline,
                                   absl::FunctionRef<absl::Status(const Response&)> sink,
                                   rpc::CallCanceller* canceller) {
  if (*whole) return absl::OkStatus();  // What failed came behind it.
  const auto stub = Service::NewStub(route.channel);
  absl::Status sunk;
  Call call(route);
  if (canceller != nullptr) canceller->Attach([&call] { call.Cancel(); });
  const absl::Cleanup detach = [canceller] {
    if (canceller != nullptr) canceller->Detach();
  };
  const auto stream = (stub.get()->*begin)(&call.context(), *request, &call.queue(), call.tag());
  const auto take = [&](const Response& answer) {
    sunk = sink(answer);  // May take its time.
    // An empty message extends no deadline: a server might begin an answer each time and never
    // bring bytes.
    if (!answer.data().empty()) *deadline = absl::Now() + timeout;
    const uint64_t end = answer.offset() + answer.data().size();
    if (!sunk.ok() || answer.data().empty() || answer.ahead() || end <= request->offset()) {
      return sunk;
    }
    const uint64_t done = end - request->offset();
    request->set_length_bytes(request->length_bytes() - std::min(done, request->length_bytes()));
    request->set_offset(end);
    if (request->length_bytes() == 0) *whole = true;
    return sunk;
  };
  absl::Status read = call.ReadAll<Response>(*stream, timeout, deadline, take);
  // A request for the rest would be one for all.
  return sunk.ok() && *whole ? absl::OkStatus() : read;
}

ReaderCalls& ReaderCalls::Get() {
  static auto* const calls = new ReaderCalls(Times());
  return *calls;
}

absl::Status ReaderCalls::Begin(Route* route, absl::Duration* timeout, Turn turn) {
  absl::MutexLock lock(&mutex_);
  if (const absl::Status usable = Engine::Get().CheckUsable(); !usable.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat(usable.message(), "; read it in a program of its own"));
  }
  if (std::string token = TokenReader::Get().Newest(route->options);
      token != route->options.token) {
    const std::string before = Engine::KeyOf(route->options);
    route->options.token = std::move(token);
    if (Engine::KeyOf(route->options) != before) peers_.erase(before);
  }
  Peer& peer = peers_[Engine::KeyOf(route->options)];
  if (turn == Turn::kFirst && absl::Now() < peer.suspect_until) {
    *timeout = std::min(*timeout, kSuspectTimeout);
  }
  if (peer.channel == nullptr) {
    const absl::Status started =
        Engine::Get().StartGrpc([&] { peer.channel = rpc::MakeReadingChannel(route->options); });
    H5M_RETURN_IF_ERROR(started);
  }
  ++calls_;
  route->channel = peer.channel;
  return absl::OkStatus();
}

void ReaderCalls::End(const Route& route, const absl::Status& status) {
  if (absl::IsUnauthenticated(status)) TokenReader::Get().ReadSoon(route.options);
  absl::MutexLock lock(&mutex_);
  --calls_;
  Peer& peer = peers_[Engine::KeyOf(route.options)];
  const bool away = IsAway(status);
  // One that is slow still gets the connection, and all of its time, where it is needed.
  if (away && route.is_trial && absl::IsDeadlineExceeded(status)) return;
  if (away)
    Engine::Get().LetGo(peer.channel);  // The next call connects afresh, without gRPC's back-off.
  if (away && route.is_trial) return;
  peer.suspect_until = away ? absl::Now() + Engine::kSuspectFor : absl::InfinitePast();
}

absl::Status ReaderCalls::SendPartOnce(const Route& route, absl::Duration timeout,
                                       const PartOfCut& part, absl::Time* deadline) {
  grpc::GenericStub stub(route.channel);
  grpc::Status status;
  Call call(route);
  const auto stream = stub.PrepareCall(&call.context(), kMirrorFile, &call.queue());
  stream->StartCall(call.tag());
  Call::Event event = call.Wait(*deadline);
  const absl::Time since = absl::Now();
  absl::Status read;
  if (event == Call::Event::kOk) event = call.WritePart(*stream, part, timeout, &read);
  v1::MirrorFileResponse answer;
  if (event == Call::Event::kOk && read.ok()) {
    const absl::Time now = absl::Now();
    event = call.ReadAnswer(*stream, now + AnswerTimeout(part.bytes, now - since, timeout), timeout,
                            &answer);
  }
  if (!read.ok()) call.Cancel();
  stream->Finish(&status, call.tag());
  const bool is_late = call.Wait(absl::Now() + timeout) == Call::Event::kLate;
  H5M_RETURN_IF_ERROR(read);
  if (is_late || event == Call::Event::kLate) return Late();
  H5M_RETURN_IF_ERROR(call.Ended(status));
  if (answer.has_part_taken() && answer.part_taken().bytes() == part.bytes) {
    return absl::OkStatus();
  }
  return absl::DataLossError("the server has taken another part than was sent");
}

absl::Status ReaderCalls::SendPart(const ReaderServer& server, const PartOfCut& part,
                                   absl::Duration timeout) {
  Route route{server};
  H5M_RETURN_IF_ERROR(Begin(&route, &timeout));
  absl::Time deadline = absl::Now() + timeout;
  const absl::Status status = SendPartOnce(route, timeout, part, &deadline);
  route.channel.reset();
  End(route, status);
  return status.ok() ? status : rpc::NameServer(route.options, status);
}

absl::StatusOr<v1::Version> ReaderCalls::FindVersion(const ReaderServer& server,
                                                     const v1::FindVersionRequest& request,
                                                     absl::Duration timeout) {
  v1::FindVersionResponse response;
  const Target target{server, request.name(), timeout};
  H5M_RETURN_IF_ERROR(Run(target, [&](const Route& route, absl::Time* deadline) {
    return AskOnce<v1::Versions>(route, &v1::Versions::Stub::AsyncFindVersion, request, *deadline,
                                 &response);
  }));
  return std::move(*response.mutable_version());
}

absl::Status ReaderCalls::ReadVersion(const ReaderServer& server, v1::ReadVersionRequest request,
                                      absl::Duration timeout, Sink sink,
                                      rpc::CallCanceller* canceller) {
  bool whole = false;
  const auto read = [&](const Route& route, absl::Time* deadline) {
    return ReadOnce<v1::Versions, v1::ReadVersionResponse>(
        route, timeout, &v1::Versions::Stub::AsyncReadVersion, &request, &whole, deadline, sink,
        canceller);
  };
  const Target target{server, request.name(), timeout};
  return canceller == nullptr ? Run(target, read) : RunOnce(target, read);
}

absl::Status ReaderCalls::ReadSnapshot(const ReaderServer& server, v1::ReadSnapshotRequest request,
                                       absl::Duration timeout, SnapshotSink sink,
                                       rpc::CallCanceller* canceller) {
  bool whole = false;
  const auto read = [&](const Route& route, absl::Time* deadline) {
    return ReadOnce<v1::Snapshots, v1::ReadSnapshotResponse>(
        route, timeout, &v1::Snapshots::Stub::AsyncReadSnapshot, &request, &whole, deadline, sink,
        canceller);
  };
  const Target target{server, request.name(), timeout};
  return canceller == nullptr ? Run(target, read) : RunOnce(target, read);
}

absl::Status ReaderCalls::CloseSnapshot(const ReaderServer& server,
                                        const v1::CloseSnapshotRequest& request,
                                        absl::Duration timeout) {
  v1::CloseSnapshotResponse response;
  const Target target{server, request.name(), timeout};
  return Run(target, [&](const Route& route, absl::Time* deadline) {
    return AskOnce<v1::Snapshots>(route, &v1::Snapshots::Stub::AsyncCloseSnapshot, request,
                                  *deadline, &response);
  });
}

absl::StatusOr<v1::WaitForCutResponse> ReaderCalls::WaitForCut(const ReaderServer& server,
                                                               const v1::WaitForCutRequest& request,
                                                               absl::Duration timeout) {
  v1::WaitForCutResponse response;
  const absl::Time until = absl::Now() + timeout;
  for (;;) {
    const uint64_t forks = ForksBegun();
    const absl::Status status =
        RunAtServers({server, request.name(), until - absl::Now(), this},
                     [&](const Route& route, absl::Time* deadline) {
                       return AskOnce<v1::Snapshots>(route, &v1::Snapshots::Stub::AsyncWaitForCut,
                                                     request, *deadline, &response);
                     });
    if (absl::IsCancelled(status) && ForksBegun() != forks) continue;
    H5M_RETURN_IF_ERROR(status);
    return response;
  }
}

absl::StatusOr<v1::Version> ReaderCalls::DigestFile(const rpc::ClientOptions& server,
                                                    const v1::DigestFileRequest& request,
                                                    absl::Duration timeout, rpc::DigestSink sink) {
  rpc::DigestBlocks blocks(request, sink);
  const ReaderServer only{server};
  bool begun = false;
  const Target target{only, request.name(), timeout};
  H5M_RETURN_IF_ERROR(RunAtServers(target, [&](const Route& route, absl::Time* deadline) {
    const absl::Status status = DigestOnce(route, timeout, request, deadline, blocks, &begun);
    // It would begin again with the first block, here or at another server.
    return begun && IsCutShort(status) ? absl::AbortedError(status.message()) : status;
  }));
  return blocks.Finish();
}

absl::Status ReaderCalls::DigestOnce(const Route& route, absl::Duration timeout,
                                     const v1::DigestFileRequest& request, absl::Time* deadline,
                                     rpc::DigestBlocks& blocks, bool* begun) {
  H5M_RETURN_IF_ERROR(rpc::WaitConnected(*route.channel, route.options, *deadline - absl::Now()));
  timeout = std::max(timeout, kDigestTimeout);
  *deadline = absl::Now() + timeout;
  const auto stub = v1::Files::NewStub(route.channel);
  Call call(route);
  const auto stream = stub->AsyncDigestFile(&call.context(), request, &call.queue(), call.tag());
  const auto take = [&](const v1::DigestFileResponse& answer) {
    *begun = true;
    absl::Status taken = blocks.Take(answer);
    *deadline = absl::Now() + timeout;
    return taken;
  };
  return call.ReadAll<v1::DigestFileResponse>(*stream, timeout, deadline, take);
}

// Not while one is under way, which would cancel the call that follows.
uint64_t ReaderCalls::ForksBegun() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(
      +[](bool* forks) { return !*forks; }, &forks_));
  return forks_begun_;
}

std::shared_ptr<rpc::BlockCache> ReaderCalls::Cache(uint64_t capacity_bytes) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<rpc::BlockCache> cache = cache_.lock();
  if (cache == nullptr) cache_ = cache = std::make_shared<rpc::BlockCache>(capacity_bytes);
  cache->Grow(capacity_bytes);
  return cache;
}

bool ReaderCalls::PrepareFork() {
  mutex_.Lock();
  forks_ = true;
  ++forks_begun_;
  for (Call* wait : waits_) wait->Cancel();
  mutex_.AwaitWithTimeout(absl::Condition(
                              +[](int* calls) { return *calls == 0; }, &calls_),
                          Engine::kForkWait);
  bool used = false;
  for (auto& [key, peer] : peers_) {
    used = used || peer.channel != nullptr;
    Engine::Get().LetGo(peer.channel);
  }
  return used;
}

void ReaderCalls::ChildAfterFork() {
  calls_ = 0;  // Those of the parent's other threads.
  waits_.clear();
  forks_ = false;
  mutex_.Unlock();
}

void ReaderCalls::Drain() {
  absl::MutexLock lock(&mutex_);
  if (!cache_.expired() || calls_ != 0) return;
  for (auto& [key, peer] : peers_) Engine::Get().LetGo(peer.channel);
  peers_.clear();
}

}  // namespace h5mirror::vfd
