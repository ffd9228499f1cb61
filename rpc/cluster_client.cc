#include "rpc/cluster_client.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "rpc/elsewhere.h"
#include "rpc/server_pool.h"

namespace h5mirror::rpc {
namespace {

const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

// A server that says that another one, or nobody, serves the file has done nothing of the call.
bool IsLost(const absl::Status& status) {
  const bool no_answer = absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
  return no_answer && !ElsewhereOf(status).has_value() && !IsNobodyServes(status);
}

enum class Repeat {
  kNever,  // the server that is lost may have done it
  kIfLost,
};

// Without an id another server cannot tell a repeat from a second request.
Repeat RepeatUnder(const std::string& request_id) {
  return request_id.empty() ? Repeat::kNever : Repeat::kIfLost;
}

// Streams hold it, as they may outlive their client. The pool's timeout is for the connections of a
// call, and begins again with the first failure of a server that was connected.
struct Servers {
  ServerPool pool;
  Sleep sleep;
};

// The way of one call.
class Walk {
 public:
  Walk(std::shared_ptr<Servers> servers, const std::string& name)
      : servers_(std::move(servers)),
        pool_(servers_->pool),
        walk_(pool_.WalkTo(name, absl::Now() + pool_.timeout())),
        server_(walk_.Server()) {}

  bool IsConnected() { return pool_.IsConnectedTo(server_); }
  absl::StatusOr<std::shared_ptr<Client>> Connect() {
    server_ = walk_.Server();
    const absl::Duration limit = walk_.has_others()
                                     ? walk_.Limit(ServerWalk::kConnectMax, absl::Now())
                                     : absl::InfiniteDuration();
    absl::StatusOr<std::shared_ptr<Client>> client = pool_.ClientOf(server_, limit);
    is_connected_ = client.ok();
    return client;
  }
  // As ServerWalk::SetRefusedUntil().
  void SetRefusedUntil(absl::Time time) { walk_.SetRefusedUntil(time); }
  // As ServerWalk::Next(), after the pause. False: it is over, with error().
  bool Next(const absl::Status& status) {
    pool_.OnEnd(server_, status);
    const absl::Time now = absl::Now();
    if (is_connected_ && !std::exchange(has_failed_, true)) walk_.Extend(now + pool_.timeout());
    const std::optional<absl::Duration> pause = walk_.Next(status, now);
    if (pause) servers_->sleep(*pause);
    return pause.has_value();
  }
  void End(const absl::Status& status) { pool_.OnEnd(server_, status); }
  const absl::Status& error() const { return walk_.error(); }

 private:
  std::shared_ptr<Servers> servers_;
  ServerPool& pool_;
  ServerWalk walk_;
  ClientOptions server_;
  bool is_connected_ = false;
  bool has_failed_ = false;
};

// Goes on at another server as long as nothing has come.
class ClusterFollow final : public FollowStream {
 public:
  ClusterFollow(std::shared_ptr<Servers> servers, const v1::FollowFileRequest& request)
      : request_(request), walk_(std::move(servers), request.name()) {
    if (walk_.IsConnected()) static_cast<void>(Open());  // Else Read() does it, and waits.
  }

  bool Read(v1::FollowFileResponse& message) override {
    while (!ended_) {
      if (FollowStream* stream = Open(); stream != nullptr && stream->Read(message)) {
        has_begun_ = true;
        return true;
      }
      EndStream();
    }
    return false;
  }

  void Cancel() override {
    absl::MutexLock lock(&mutex_);
    is_cancelled_ = true;
    if (stream_ != nullptr) stream_->Cancel();
  }

  absl::Status Finish() override {
    if (!ended_) EndStream();
    return ended_.value_or(absl::CancelledError("the stream was given up"));
  }

  bool HasNewCredential() override { return stream_ != nullptr && stream_->HasNewCredential(); }

 private:
  // Null: there is no connection, and `failed_` says why.
  FollowStream* Open() {
    if (stream_ != nullptr) return stream_.get();
    absl::StatusOr<std::shared_ptr<Client>> client = walk_.Connect();
    failed_ = client.status();
    if (!client.ok()) return nullptr;
    client_ = *std::move(client);
    std::unique_ptr<FollowStream> stream = client_->FollowFile(request_);
    absl::MutexLock lock(&mutex_);
    if (is_cancelled_) stream->Cancel();
    stream_ = std::move(stream);
    return stream_.get();
  }

  void EndStream() {
    const absl::Status status = stream_ != nullptr ? stream_->Finish() : failed_;
    if (has_begun_ || IsCancelled()) {
      walk_.End(status);
      ended_ = status;
    } else if (walk_.Next(status)) {
      absl::MutexLock lock(&mutex_);
      stream_.reset();
    } else {
      ended_ = walk_.error();
    }
  }

  bool IsCancelled() {
    absl::MutexLock lock(&mutex_);
    return is_cancelled_;
  }

  const v1::FollowFileRequest request_;
  Walk walk_;
  std::shared_ptr<Client> client_;  // of the stream
  absl::Status failed_;
  std::optional<absl::Status> ended_;
  bool has_begun_ = false;
  absl::Mutex mutex_;  // for Cancel(): of the pointer, which only the other thread changes
  std::unique_ptr<FollowStream> stream_;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

// Its server is the one that the pool knows to have the file when the first message is sent. The
// callers have asked for the file's state before.
class ClusterMirror final : public MirrorStream {
 public:
  explicit ClusterMirror(std::shared_ptr<Servers> servers) : servers_(std::move(servers)) {}

  absl::Status Send(const v1::MirrorFileRequest& request) override {
    if (stream_ == nullptr) H5M_RETURN_IF_ERROR(Open(request.open().name()));
    return Noted(stream_->Send(request));
  }
  absl::Status SendWrites(absl::Span<const Extent> extents, std::optional<uint32_t> crc32c,
                          absl::Span<const grpc::Slice> data) override {
    if (stream_ == nullptr) return NotBegun();
    return Noted(stream_->SendWrites(extents, crc32c, data));
  }
  absl::StatusOr<v1::MirrorFileResponse> Receive() override {
    if (stream_ == nullptr) H5M_RETURN_IF_ERROR(Open(""));  // A server may refuse it at once.
    absl::StatusOr<v1::MirrorFileResponse> response = stream_->Receive();
    static_cast<void>(Noted(response.status()));
    return response;
  }
  absl::Status Finish() override {
    return stream_ == nullptr ? NotBegun() : Noted(stream_->Finish());
  }

 private:
  static absl::Status NotBegun() {
    return absl::FailedPreconditionError("a mirror stream begins with its open");
  }

  absl::Status Open(const std::string& name) {
    Walk walk(servers_, name);
    for (;;) {
      absl::StatusOr<std::shared_ptr<Client>> client = walk.Connect();
      if (client.ok()) {
        client_ = *std::move(client);
        H5M_ASSIGN_OR_RETURN(stream_, client_->OpenMirrorStream());
        walk_.emplace(std::move(walk));
        return absl::OkStatus();
      }
      if (!walk.Next(client.status())) return walk.error();
    }
  }

  absl::Status Noted(absl::Status status) {
    if (!status.ok()) walk_->End(status);
    return status;
  }

  std::shared_ptr<Servers> servers_;
  std::shared_ptr<Client> client_;
  std::unique_ptr<MirrorStream> stream_;
  std::optional<Walk> walk_;
};

class ClusterClient final : public Client {
 public:
  ClusterClient(const ClientOptions& options, ConnectOne connect, absl::Duration timeout,
                absl::Duration refused_max, Sleep sleep)
      : servers_(
            new Servers{{options, std::move(connect), timeout, refused_max}, std::move(sleep)}) {}

  absl::Status Connect() {
    Walk walk(servers_, "");
    walk.SetRefusedUntil(absl::Now() + servers_->pool.refused_max());
    for (;;) {
      const absl::Status status = walk.Connect().status();
      if (!walk.Next(status)) return walk.error();
    }
  }

  const ClientOptions& options() const override { return servers_->pool.cluster(); }

  absl::StatusOr<v1::GetServerResponse> GetServer(const std::string& name) override {
    return Ask(name, Repeat::kIfLost, [&](Client& server) { return server.GetServer(name); });
  }

  absl::StatusOr<v1::GetUsageResponse> GetUsage(const v1::GetUsageRequest& request) override {
    return Ask("", Repeat::kIfLost, [&](Client& server) { return server.GetUsage(request); });
  }

  absl::StatusOr<v1::ListFilesResponse> ListFiles(const v1::ListFilesRequest& request) override {
    return Ask(request.directory(), Repeat::kIfLost,
               [&](Client& server) { return server.ListFiles(request); });
  }

  absl::StatusOr<v1::FileStatus> GetFile(const v1::GetFileRequest& request,
                                         absl::Duration timeout) override {
    return Ask(request.name(), Repeat::kIfLost,
               [&](Client& server) { return server.GetFile(request, timeout); });
  }

  absl::StatusOr<v1::FileStatus> AdoptFile(const v1::AdoptFileRequest& request) override {
    return Ask(request.name(), Repeat::kIfLost,
               [&](Client& server) { return server.AdoptFile(request); });
  }

  absl::StatusOr<v1::ListVersionsResponse> ListVersions(
      const v1::ListVersionsRequest& request) override {
    return Ask(request.name(), Repeat::kIfLost,
               [&](Client& server) { return server.ListVersions(request); });
  }

  absl::StatusOr<v1::Version> GetVersion(const v1::GetVersionRequest& request) override {
    return Ask(request.name(), Repeat::kIfLost,
               [&](Client& server) { return server.GetVersion(request); });
  }

  absl::StatusOr<v1::Version> FindVersion(const v1::FindVersionRequest& request) override {
    return Ask(request.name(), Repeat::kIfLost,
               [&](Client& server) { return server.FindVersion(request); });
  }

  absl::StatusOr<v1::TagVersionResponse> TagVersion(const v1::TagVersionRequest& request) override {
    return Ask(request.name(), Repeat::kNever,
               [&](Client& server) { return server.TagVersion(request); });
  }

  absl::StatusOr<v1::UntagVersionResponse> UntagVersion(
      const v1::UntagVersionRequest& request) override {
    return Ask(request.name(), Repeat::kNever,
               [&](Client& server) { return server.UntagVersion(request); });
  }

  absl::StatusOr<v1::Version> RollbackVersion(const v1::RollbackVersionRequest& request) override {
    return Ask(request.name(), RepeatUnder(request.request_id()),
               [&](Client& server) { return server.RollbackVersion(request); });
  }

  absl::StatusOr<v1::Version> ForkVersion(const v1::ForkVersionRequest& request,
                                          absl::Duration timeout) override {
    return Ask(request.name(), RepeatUnder(request.request_id()),
               [&](Client& server) { return server.ForkVersion(request, timeout); });
  }

  absl::StatusOr<v1::PromoteVersionResponse> PromoteVersion(
      const v1::PromoteVersionRequest& request, absl::Duration timeout) override {
    return Ask(request.name(), RepeatUnder(request.request_id()),
               [&](Client& server) { return server.PromoteVersion(request, timeout); });
  }

  absl::StatusOr<v1::CommitVersionResponse> CommitVersion(const v1::CommitVersionRequest& request,
                                                          absl::Duration timeout) override {
    return Ask(request.name(), RepeatUnder(request.request_id()),
               [&](Client& server) { return server.CommitVersion(request, timeout); });
  }

  absl::StatusOr<v1::MirrorCheck> RecordCheck(const v1::RecordCheckRequest& request) override {
    return Ask(request.name(), Repeat::kIfLost,
               [&](Client& server) { return server.RecordCheck(request); });
  }

  absl::StatusOr<v1::FileStatus> MoveFile(const v1::MoveFileRequest& request) override {
    return Ask(request.name(), Repeat::kNever,
               [&](Client& server) { return server.MoveFile(request); });
  }

  absl::StatusOr<v1::FileStatus> SetFileOwner(const v1::SetFileOwnerRequest& request) override {
    return Ask(request.name(), Repeat::kIfLost,
               [&](Client& server) { return server.SetFileOwner(request); });
  }

  absl::StatusOr<v1::RemovedFile> RemoveFile(const v1::RemoveFileRequest& request) override {
    return Ask(request.name(), Repeat::kNever,
               [&](Client& server) { return server.RemoveFile(request); });
  }

  absl::StatusOr<v1::ListRemovedFilesResponse> ListRemovedFiles(
      const v1::ListRemovedFilesRequest& request) override {
    return Ask(request.name(), Repeat::kIfLost,
               [&](Client& server) { return server.ListRemovedFiles(request); });
  }

  absl::StatusOr<v1::FileStatus> UndeleteFile(const v1::UndeleteFileRequest& request) override {
    return Ask(request.name(), Repeat::kNever,
               [&](Client& server) { return server.UndeleteFile(request); });
  }

  absl::StatusOr<v1::WaitForCutResponse> WaitForCut(const v1::WaitForCutRequest& request,
                                                    absl::Duration timeout) override {
    // The caller knows how long it would wait again.
    return Ask(request.name(), Repeat::kNever,
               [&](Client& server) { return server.WaitForCut(request, timeout); });
  }

  absl::StatusOr<v1::GetHistoryStatsResponse> GetHistoryStats(
      const v1::GetHistoryStatsRequest& request, absl::Duration timeout) override {
    return Ask(request.name(), Repeat::kIfLost,
               [&](Client& server) { return server.GetHistoryStats(request, timeout); });
  }

  absl::Status ReadVersion(
      const v1::ReadVersionRequest& request,
      absl::FunctionRef<absl::Status(const v1::ReadVersionResponse&)> sink) override {
    return Stream<v1::ReadVersionResponse>(
        request.name(), Repeat::kIfLost, sink,
        [&](Client& server, auto begun) { return server.ReadVersion(request, begun); });
  }

  absl::Status MapVersion(
      const v1::MapVersionRequest& request,
      absl::FunctionRef<absl::Status(const v1::MapVersionResponse&)> sink) override {
    return Stream<v1::MapVersionResponse>(
        request.name(), Repeat::kIfLost, sink,
        [&](Client& server, auto begun) { return server.MapVersion(request, begun); });
  }

  absl::Status ListChanges(
      const v1::ListChangesRequest& request,
      absl::FunctionRef<absl::Status(const v1::ListChangesResponse&)> sink) override {
    return Stream<v1::ListChangesResponse>(
        request.name(), Repeat::kIfLost, sink,
        [&](Client& server, auto begun) { return server.ListChanges(request, begun); });
  }

  absl::Status PruneVersions(
      const v1::PruneVersionsRequest& request,
      absl::FunctionRef<absl::Status(const v1::PruneVersionsResponse&)> sink) override {
    return Stream<v1::PruneVersionsResponse>(
        request.name(), Repeat::kNever, sink,
        [&](Client& server, auto begun) { return server.PruneVersions(request, begun); });
  }

  absl::Status VerifyHistory(
      const v1::VerifyHistoryRequest& request,
      absl::FunctionRef<absl::Status(const v1::VerifyHistoryResponse&)> sink) override {
    return Stream<v1::VerifyHistoryResponse>(
        request.name(), Repeat::kIfLost, sink,
        [&](Client& server, auto begun) { return server.VerifyHistory(request, begun); });
  }

  absl::Status DigestFile(
      const v1::DigestFileRequest& request,
      absl::FunctionRef<absl::Status(const v1::DigestFileResponse&)> sink) override {
    return Stream<v1::DigestFileResponse>(
        request.name(), Repeat::kIfLost, sink,
        [&](Client& server, auto begun) { return server.DigestFile(request, begun); });
  }

  absl::Status ReadSnapshot(
      const v1::ReadSnapshotRequest& request,
      absl::FunctionRef<absl::Status(const v1::ReadSnapshotResponse&)> sink) override {
    return Stream<v1::ReadSnapshotResponse>(
        request.name(), Repeat::kIfLost, sink,
        [&](Client& server, auto begun) { return server.ReadSnapshot(request, begun); });
  }

  absl::Status CloseSnapshot(const v1::CloseSnapshotRequest& request) override {
    return Ask(request.name(), Repeat::kIfLost,
               [&](Client& server) { return server.CloseSnapshot(request); });
  }

  std::unique_ptr<FollowStream> FollowFile(const v1::FollowFileRequest& request) override {
    return std::make_unique<ClusterFollow>(servers_, request);
  }

  absl::StatusOr<std::unique_ptr<MirrorStream>> OpenMirrorStream() override {
    return std::make_unique<ClusterMirror>(servers_);
  }

 private:
  template <typename Call>
  std::invoke_result_t<Call, Client&> Ask(const std::string& name, Repeat repeat, Call call) {
    Walk walk(servers_, name);
    for (;;) {
      const absl::StatusOr<std::shared_ptr<Client>> client = walk.Connect();
      absl::Status status = client.status();
      if (client.ok()) {
        auto result = call(**client);
        status = StatusOf(result);
        if (status.ok() || (repeat == Repeat::kNever && IsLost(status))) {
          walk.End(status);
          return result;
        }
      }
      if (!walk.Next(status)) return walk.error();
    }
  }

  // Messages that have come are not to come again.
  template <typename Response, typename Call>
  absl::Status Stream(const std::string& name, Repeat repeat,
                      absl::FunctionRef<absl::Status(const Response&)> sink, Call call) {
    bool has_begun = false;
    absl::Status ended;
    const auto once = [&](Client& server) -> absl::Status {
      const auto begun = [&](const Response& response) {
        has_begun = true;
        return sink(response);
      };
      ended = call(server, absl::FunctionRef<absl::Status(const Response&)>(begun));
      return has_begun ? absl::OkStatus() : ended;
    };
    H5M_RETURN_IF_ERROR(Ask(name, repeat, once));
    return ended;
  }

  const std::shared_ptr<Servers> servers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> ConnectToCluster(const ClientOptions& options,
                                                         ConnectOne connect, absl::Duration timeout,
                                                         absl::Duration refused_max, Sleep sleep) {
  auto client = std::make_unique<ClusterClient>(options, std::move(connect), timeout, refused_max,
                                                std::move(sleep));
  H5M_RETURN_IF_ERROR(client->Connect());
  return client;
}

}  // namespace h5mirror::rpc
