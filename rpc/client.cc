#include "rpc/client.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "rpc/cluster_client.h"
#include "rpc/elsewhere.h"
#include "rpc/grpc_threads.h"
#include "rpc/mirror_stream.h"
#include "rpc/reading_channel.h"
#include "rpc/status.h"
#include "rpc/texts.h"

namespace h5mirror::rpc {
namespace {

constexpr absl::Duration kTimeoutDefault = absl::Seconds(30);
// A server that restarts is back within this; longer outages are for the user to see.
constexpr absl::Duration kReconnectMax = absl::Seconds(2);
// A courtesy: the server lets go of a cut by itself.
constexpr absl::Duration kCloseTimeout = absl::Seconds(2);
// How much memory of its last message a thread keeps.
constexpr size_t kKeptBytesMax = 2 << 20;

// Between the attempts of a call whose caller asks too often.
class Pauses {
 public:
  explicit Pauses(absl::Time deadline) : deadline_(deadline) {}

  // Waits; the next time for twice as long. False: the next attempt would come too late.
  bool Wait() {
    if (absl::Now() + pause_ >= deadline_) return false;
    absl::SleepFor(pause_);
    pause_ = std::min(2 * pause_, kLongest);
    return true;
  }

 private:
  static constexpr absl::Duration kLongest = absl::Seconds(1);

  const absl::Time deadline_;
  absl::Duration pause_ = absl::Milliseconds(100);
};

class Follow final : public FollowStream {
 public:
  Follow(const std::shared_ptr<grpc::Channel>& channel, const ClientOptions& options,
         const v1::FollowFileRequest& request)
      : options_(options), stub_(v1::Snapshots::NewStub(channel)) {
    shown_ = Authorize(options_, context_);
    reader_ = stub_->FollowFile(&context_, request);
  }
  ~Follow() override {
    if (finished_) return;
    context_.TryCancel();
    v1::FollowFileResponse rest;
    while (reader_->Read(&rest)) {
    }
    static_cast<void>(reader_->Finish());
  }

  bool Read(v1::FollowFileResponse& message) override { return reader_->Read(&message); }
  void Cancel() override {
    is_cancelled_ = true;
    context_.TryCancel();
  }
  absl::Status Finish() override {
    finished_ = true;
    const grpc::Status status = reader_->Finish();
    status_ = is_cancelled_ ? FromGrpc(status) : FromServer(status);
    return NameServer(options_, status_);
  }
  bool HasNewCredential() override { return RenewCredential(options_, shown_, status_); }

 private:
  const ClientOptions options_;
  const std::unique_ptr<v1::Snapshots::Stub> stub_;
  grpc::ClientContext context_;
  std::string shown_;
  absl::Status status_;
  std::atomic<bool> is_cancelled_ = false;  // by any thread
  std::unique_ptr<grpc::ClientReader<v1::FollowFileResponse>> reader_;
  bool finished_ = false;
};

// A request that no server could take.
class NotSent final : public FollowStream {
 public:
  explicit NotSent(absl::Status why) : why_(std::move(why)) {}
  bool Read(v1::FollowFileResponse&) override { return false; }
  void Cancel() override {}
  absl::Status Finish() override { return why_; }

 private:
  const absl::Status why_;
};

enum class Repeat { kNever, kOnceIfUnavailable };

// Without an id the server cannot tell a repeat from a second request.
Repeat RepeatUnder(const std::string& request_id) {
  return request_id.empty() ? Repeat::kNever : Repeat::kOnceIfUnavailable;
}

// Messages of a MiB come into memory that this thread has used for those of its last call: new
// memory costs a fault for each page.
template <typename Response>
class KeptBytes {
 public:
  explicit KeptBytes(Response& response) : response_(response) { Swap(); }
  ~KeptBytes() {
    if constexpr (kHasData) {
      response_.clear_data();
      if (response_.data().capacity() <= kKeptBytesMax) Swap();
    }
  }
  KeptBytes(const KeptBytes&) = delete;

 private:
  static constexpr bool kHasData = requires(Response & response) { response.mutable_data(); };

  void Swap() {
    if constexpr (kHasData) response_.mutable_data()->swap(kept_);
  }

  static inline thread_local std::string kept_;
  Response& response_;
};

class ClientImpl final : public Client {
 public:
  ClientImpl(ClientOptions options, std::shared_ptr<grpc::Channel> channel)
      : options_(std::move(options)),
        channel_(std::move(channel)),
        files_(v1::Files::NewStub(channel_)),
        versions_(v1::Versions::NewStub(channel_)),
        snapshots_(v1::Snapshots::NewStub(channel_)),
        server_(v1::Server::NewStub(channel_)) {}

  const ClientOptions& options() const override { return options_; }

  absl::StatusOr<v1::GetServerResponse> GetServer(const std::string& name) override {
    v1::GetServerRequest request;
    request.set_name(name);
    request.mutable_protocol()->set_oldest(kProtocolOldest);
    request.mutable_protocol()->set_newest(kProtocolNewest);
    return Call(*server_, &v1::Server::Stub::GetServer, request, Repeat::kOnceIfUnavailable);
  }

  absl::StatusOr<v1::GetUsageResponse> GetUsage(const v1::GetUsageRequest& request) override {
    return Call(*server_, &v1::Server::Stub::GetUsage, request, Repeat::kOnceIfUnavailable);
  }

  absl::StatusOr<v1::ListFilesResponse> ListFiles(const v1::ListFilesRequest& request) override {
    return Call(*files_, &v1::Files::Stub::ListFiles, request, Repeat::kOnceIfUnavailable);
  }

  absl::StatusOr<v1::FileStatus> GetFile(const v1::GetFileRequest& request,
                                         absl::Duration timeout) override {
    H5M_ASSIGN_OR_RETURN(
        v1::GetFileResponse response,
        Call(*files_, &v1::Files::Stub::GetFile, request, Repeat::kOnceIfUnavailable, timeout));
    return std::move(*response.mutable_file());
  }

  absl::StatusOr<v1::FileStatus> AdoptFile(const v1::AdoptFileRequest& request) override {
    H5M_ASSIGN_OR_RETURN(v1::AdoptFileResponse response, Call(*files_, &v1::Files::Stub::AdoptFile,
                                                              request, Repeat::kOnceIfUnavailable));
    return std::move(*response.mutable_file());
  }

  absl::StatusOr<v1::ListVersionsResponse> ListVersions(
      const v1::ListVersionsRequest& request) override {
    return Call(*versions_, &v1::Versions::Stub::ListVersions, request, Repeat::kOnceIfUnavailable);
  }

  absl::StatusOr<v1::Version> GetVersion(const v1::GetVersionRequest& request) override {
    H5M_ASSIGN_OR_RETURN(
        v1::GetVersionResponse response,
        Call(*versions_, &v1::Versions::Stub::GetVersion, request, Repeat::kOnceIfUnavailable));
    return std::move(*response.mutable_version());
  }

  absl::StatusOr<v1::Version> FindVersion(const v1::FindVersionRequest& request) override {
    H5M_ASSIGN_OR_RETURN(
        v1::FindVersionResponse response,
        Call(*versions_, &v1::Versions::Stub::FindVersion, request, Repeat::kOnceIfUnavailable));
    return std::move(*response.mutable_version());
  }

  absl::StatusOr<v1::TagVersionResponse> TagVersion(const v1::TagVersionRequest& request) override {
    // No retry for the newest version: the second call might tag a newer one.
    const Repeat repeat = request.version() == 0 ? Repeat::kNever : Repeat::kOnceIfUnavailable;
    return Call(*versions_, &v1::Versions::Stub::TagVersion, request, repeat);
  }

  absl::StatusOr<v1::UntagVersionResponse> UntagVersion(
      const v1::UntagVersionRequest& request) override {
    return Call(*versions_, &v1::Versions::Stub::UntagVersion, request, Repeat::kNever);
  }

  absl::StatusOr<v1::Version> RollbackVersion(const v1::RollbackVersionRequest& request) override {
    H5M_ASSIGN_OR_RETURN(v1::RollbackVersionResponse response,
                         Call(*versions_, &v1::Versions::Stub::RollbackVersion, request,
                              RepeatUnder(request.request_id())));
    return std::move(*response.mutable_version());
  }

  absl::StatusOr<v1::Version> ForkVersion(const v1::ForkVersionRequest& request,
                                          absl::Duration timeout) override {
    H5M_ASSIGN_OR_RETURN(v1::ForkVersionResponse response,
                         Call(*versions_, &v1::Versions::Stub::ForkVersion, request,
                              RepeatUnder(request.request_id()), timeout));
    return std::move(*response.mutable_version());
  }

  absl::StatusOr<v1::PromoteVersionResponse> PromoteVersion(
      const v1::PromoteVersionRequest& request, absl::Duration timeout) override {
    return Call(*versions_, &v1::Versions::Stub::PromoteVersion, request,
                RepeatUnder(request.request_id()), timeout);
  }

  absl::StatusOr<v1::CommitVersionResponse> CommitVersion(const v1::CommitVersionRequest& request,
                                                          absl::Duration timeout) override {
    return Call(*versions_, &v1::Versions::Stub::CommitVersion, request,
                RepeatUnder(request.request_id()), timeout);
  }

  absl::StatusOr<v1::MirrorCheck> RecordCheck(const v1::RecordCheckRequest& request) override {
    H5M_ASSIGN_OR_RETURN(
        v1::RecordCheckResponse response,
        Call(*files_, &v1::Files::Stub::RecordCheck, request, Repeat::kOnceIfUnavailable));
    return std::move(*response.mutable_check());
  }

  // A waiting caller must learn that the server was away: after a restart the server has forgotten
  // its writers.
  absl::StatusOr<v1::WaitForCutResponse> WaitForCut(const v1::WaitForCutRequest& request,
                                                    absl::Duration timeout) override {
    return Call(*snapshots_, &v1::Snapshots::Stub::WaitForCut, request, Repeat::kNever, timeout);
  }

  absl::StatusOr<v1::FileStatus> SetFileOwner(const v1::SetFileOwnerRequest& request) override {
    H5M_ASSIGN_OR_RETURN(
        v1::SetFileOwnerResponse response,
        Call(*files_, &v1::Files::Stub::SetFileOwner, request, Repeat::kOnceIfUnavailable));
    return std::move(*response.mutable_file());
  }

  // These change names: a repeat of one that was done would fail, or do another one.
  absl::StatusOr<v1::FileStatus> MoveFile(const v1::MoveFileRequest& request) override {
    H5M_ASSIGN_OR_RETURN(v1::MoveFileResponse response,
                         Call(*files_, &v1::Files::Stub::MoveFile, request, Repeat::kNever));
    return std::move(*response.mutable_file());
  }

  absl::StatusOr<v1::RemovedFile> RemoveFile(const v1::RemoveFileRequest& request) override {
    H5M_ASSIGN_OR_RETURN(v1::RemoveFileResponse response,
                         Call(*files_, &v1::Files::Stub::RemoveFile, request, Repeat::kNever));
    return std::move(*response.mutable_removed());
  }

  absl::StatusOr<v1::ListRemovedFilesResponse> ListRemovedFiles(
      const v1::ListRemovedFilesRequest& request) override {
    return Call(*files_, &v1::Files::Stub::ListRemovedFiles, request, Repeat::kOnceIfUnavailable);
  }

  absl::StatusOr<v1::FileStatus> UndeleteFile(const v1::UndeleteFileRequest& request) override {
    H5M_ASSIGN_OR_RETURN(v1::UndeleteFileResponse response,
                         Call(*files_, &v1::Files::Stub::UndeleteFile, request, Repeat::kNever));
    return std::move(*response.mutable_file());
  }

  absl::Status ReadVersion(
      const v1::ReadVersionRequest& request,
      absl::FunctionRef<absl::Status(const v1::ReadVersionResponse&)> sink) override {
    return Stream<v1::ReadVersionResponse>(*versions_, &v1::Versions::Stub::ReadVersion, request,
                                           sink);
  }

  absl::Status MapVersion(
      const v1::MapVersionRequest& request,
      absl::FunctionRef<absl::Status(const v1::MapVersionResponse&)> sink) override {
    return Stream<v1::MapVersionResponse>(*versions_, &v1::Versions::Stub::MapVersion, request,
                                          sink);
  }

  absl::Status ListChanges(
      const v1::ListChangesRequest& request,
      absl::FunctionRef<absl::Status(const v1::ListChangesResponse&)> sink) override {
    return Stream<v1::ListChangesResponse>(*versions_, &v1::Versions::Stub::ListChanges, request,
                                           sink);
  }

  absl::Status PruneVersions(
      const v1::PruneVersionsRequest& request,
      absl::FunctionRef<absl::Status(const v1::PruneVersionsResponse&)> sink) override {
    return Stream<v1::PruneVersionsResponse>(*versions_, &v1::Versions::Stub::PruneVersions,
                                             request, sink);
  }

  absl::StatusOr<v1::GetHistoryStatsResponse> GetHistoryStats(
      const v1::GetHistoryStatsRequest& request, absl::Duration timeout) override {
    return Call(*versions_, &v1::Versions::Stub::GetHistoryStats, request,
                Repeat::kOnceIfUnavailable, timeout);
  }

  absl::Status VerifyHistory(
      const v1::VerifyHistoryRequest& request,
      absl::FunctionRef<absl::Status(const v1::VerifyHistoryResponse&)> sink) override {
    return Stream<v1::VerifyHistoryResponse>(*versions_, &v1::Versions::Stub::VerifyHistory,
                                             request, sink);
  }

  absl::Status DigestFile(
      const v1::DigestFileRequest& request,
      absl::FunctionRef<absl::Status(const v1::DigestFileResponse&)> sink) override {
    return Stream<v1::DigestFileResponse>(*files_, &v1::Files::Stub::DigestFile, request, sink);
  }

  absl::Status ReadSnapshot(
      const v1::ReadSnapshotRequest& request,
      absl::FunctionRef<absl::Status(const v1::ReadSnapshotResponse&)> sink) override {
    return Stream<v1::ReadSnapshotResponse>(*snapshots_, &v1::Snapshots::Stub::ReadSnapshot,
                                            request, sink);
  }

  absl::Status CloseSnapshot(const v1::CloseSnapshotRequest& request) override {
    return Call(*snapshots_, &v1::Snapshots::Stub::CloseSnapshot, request,
                Repeat::kOnceIfUnavailable, kCloseTimeout)
        .status();
  }

  std::unique_ptr<FollowStream> FollowFile(const v1::FollowFileRequest& request) override {
    absl::Status texts = CheckTexts(request);
    if (!texts.ok()) return std::make_unique<NotSent>(std::move(texts));
    return std::make_unique<Follow>(channel_, options_, request);
  }

  absl::StatusOr<std::unique_ptr<MirrorStream>> OpenMirrorStream() override {
    return StartMirrorStream(channel_, options_);
  }

 private:
  template <typename Stub, typename Request, typename Response>
  using UnaryMethod = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&, Response*);
  template <typename Stub, typename Request, typename Response>
  using StreamMethod = std::unique_ptr<grpc::ClientReader<Response>> (Stub::*)(grpc::ClientContext*,
                                                                               const Request&);

  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(Stub& stub, UnaryMethod<Stub, Request, Response> method,
                                const Request& request, Repeat repeat,
                                absl::Duration timeout = kTimeoutDefault) {
    H5M_RETURN_IF_ERROR(CheckTexts(request));
    const absl::Time deadline = absl::Now() + timeout;
    Response response;
    absl::Status status = CallOnce(stub, method, request, deadline, response);
    for (Pauses pauses(deadline); IsTooOften(status) && pauses.Wait();) {
      response.Clear();
      status = CallOnce(stub, method, request, deadline, response);
    }
    const bool is_lost = absl::IsUnavailable(status) && !ElsewhereOf(status).has_value();
    if (is_lost && repeat == Repeat::kOnceIfUnavailable && Reconnect(deadline)) {
      response.Clear();
      status = CallOnce(stub, method, request, deadline, response);
    }
    if (!status.ok()) return NameServer(options_, status);
    return response;
  }

  template <typename Stub, typename Request, typename Response>
  absl::Status CallOnce(Stub& stub, UnaryMethod<Stub, Request, Response> method,
                        const Request& request, absl::Time deadline, Response& response) {
    std::string shown;
    absl::Status status = Attempt(stub, method, request, deadline, response, shown);
    if (!RenewCredential(options_, shown, status)) return status;
    response.Clear();
    return Attempt(stub, method, request, deadline, response, shown);
  }

  template <typename Stub, typename Request, typename Response>
  absl::Status Attempt(Stub& stub, UnaryMethod<Stub, Request, Response> method,
                       const Request& request, absl::Time deadline, Response& response,
                       std::string& shown) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(deadline));
    shown = Authorize(options_, context);
    return FromServer((stub.*method)(&context, request, &response));
  }

  // True when there is a connection again.
  bool Reconnect(absl::Time deadline) {
    const absl::Duration timeout = std::min(kReconnectMax, deadline - absl::Now());
    return timeout > absl::ZeroDuration() && WaitConnected(*channel_, options_, timeout).ok();
  }

  // No deadline: a file may take hours to read. Keepalive notices a server that vanished.
  template <typename Response, typename Stub, typename Request>
  absl::Status Stream(Stub& stub, StreamMethod<Stub, Request, Response> method,
                      const Request& request,
                      absl::FunctionRef<absl::Status(const Response&)> sink) {
    H5M_RETURN_IF_ERROR(CheckTexts(request));
    absl::Status status = StreamOnce(stub, method, request, sink);
    for (Pauses pauses(absl::Now() + kTimeoutDefault); IsTooOften(status) && pauses.Wait();) {
      status = StreamOnce(stub, method, request, sink);
    }
    return status;
  }

  template <typename Response, typename Stub, typename Request>
  absl::Status StreamOnce(Stub& stub, StreamMethod<Stub, Request, Response> method,
                          const Request& request,
                          absl::FunctionRef<absl::Status(const Response&)> sink) {
    std::string shown;
    Read read = ReadStream(stub, method, request, sink, shown);
    if (!read.is_begun && RenewCredential(options_, shown, read.status)) {
      read = ReadStream(stub, method, request, sink, shown);
    }
    return read.is_of_sink ? read.status : NameServer(options_, read.status);
  }

  struct Read {
    absl::Status status = absl::OkStatus();
    bool is_begun = false;    // the sink has seen a message
    bool is_of_sink = false;  // the status is the sink's
  };

  template <typename Response, typename Stub, typename Request>
  Read ReadStream(Stub& stub, StreamMethod<Stub, Request, Response> method, const Request& request,
                  absl::FunctionRef<absl::Status(const Response&)> sink, std::string& shown) {
    grpc::ClientContext context;
    shown = Authorize(options_, context);
    const std::unique_ptr<grpc::ClientReader<Response>> reader = (stub.*method)(&context, request);
    Read read;
    absl::Status sunk;
    Response response;
    const KeptBytes<Response> bytes(response);
    while (reader->Read(&response)) {
      read.is_begun = true;
      // After a failed sink the rest is only read to reach the end of the cancelled stream.
      if (!sunk.ok()) continue;
      sunk = sink(response);
      if (!sunk.ok()) context.TryCancel();
    }
    read.status = FromServer(reader->Finish());
    if (sunk.ok()) return read;
    return {.status = std::move(sunk), .is_begun = true, .is_of_sink = true};
  }

  const ClientOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Files::Stub> files_;
  const std::unique_ptr<v1::Versions::Stub> versions_;
  const std::unique_ptr<v1::Snapshots::Stub> snapshots_;
  const std::unique_ptr<v1::Server::Stub> server_;
};

using MakeOne = std::shared_ptr<grpc::Channel> (*)(const ClientOptions& options);

template <MakeOne make>
absl::StatusOr<std::unique_ptr<Client>> ConnectBy(const ClientOptions& server,
                                                  absl::Duration timeout,
                                                  absl::Duration refused_max) {
  H5M_RETURN_IF_ERROR(CheckGrpcThreads());
  std::shared_ptr<grpc::Channel> channel = make(server);
  H5M_RETURN_IF_ERROR(WaitConnected(*channel, server, timeout, refused_max));
  return std::make_unique<ClientImpl>(server, std::move(channel));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> ConnectDirectly(const ClientOptions& server,
                                                        absl::Duration timeout,
                                                        absl::Duration refused_max) {
  return ConnectBy<MakeChannel>(server, timeout, refused_max);
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const ClientOptions& options,
                                                        absl::Duration connect_timeout,
                                                        absl::Duration refused_max) {
  return ConnectToCluster(options, ConnectDirectly, connect_timeout, refused_max);
}

absl::StatusOr<std::unique_ptr<Client>> ConnectToRead(const ClientOptions& options,
                                                      absl::Duration connect_timeout) {
  return ConnectToCluster(options, ConnectBy<MakeReadingChannel>, connect_timeout,
                          absl::InfiniteDuration());
}

}  // namespace h5mirror::rpc
