// Typed calls to a server for tools: one method per RPC, StatusOr results, deadlines.
// (The plugin's session drives the Mirror stream itself, see client_vfd/session.)
#ifndef H5MIRROR_RPC_CLIENT_H_
#define H5MIRROR_RPC_CLIENT_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "h5mirror/v1/files.grpc.pb.h"
#include "h5mirror/v1/mirror.grpc.pb.h"
#include "h5mirror/v1/server.grpc.pb.h"
#include "h5mirror/v1/snapshots.grpc.pb.h"
#include "h5mirror/v1/versions.grpc.pb.h"
#include "rpc/channel.h"
#include "rpc/client_options.h"
#include "rpc/frame_codec.h"

namespace h5mirror::rpc {

// The blocking side of one MirrorFile stream. For h5mirror's tools; the driver in users' programs
// does not use it. Not thread-safe. If destroyed before Finish(), it cancels the stream (a lost
// writer).
class MirrorStream {
 public:
  virtual ~MirrorStream() = default;
  // An error: the stream has ended, with this status.
  virtual absl::Status Send(const v1::MirrorFileRequest& request) = 0;
  virtual absl::Status SendWrites(absl::Span<const Extent> extents, std::optional<uint32_t> crc32c,
                                  absl::Span<const grpc::Slice> data) = 0;
  virtual absl::StatusOr<v1::MirrorFileResponse> Receive() = 0;
  // Half-closes and returns the stream's status.
  virtual absl::Status Finish() = 0;
};

// One FollowFile call. Read() and Finish() are called by one thread, Cancel() by any.
class FollowStream {
 public:
  virtual ~FollowStream() = default;
  // Waits for the next message; false: the stream has ended.
  virtual bool Read(v1::FollowFileResponse& message) = 0;
  // Ends the stream soon, also a Read() that waits.
  virtual void Cancel() = 0;
  // Once, after Read() has returned false: why the stream ended; kCancelled after Cancel().
  virtual absl::Status Finish() = 0;
  // After Finish() has returned kUnauthenticated: whether the next call shows another credential.
  virtual bool HasNewCredential() { return false; }
};

// A client of one server or of a cluster. In a cluster each call goes to the server that has its
// file, and to another server if that one is lost (rpc/cluster_client.h).
//
// Thread-safe. Unary calls have `timeout` each (default 30 s) and name the server in their errors.
// Idempotent calls are retried once after kUnavailable, and all once with a new credential of
// munge, if that one was refused. A call that is refused because its caller makes too many calls a
// second is retried until its timeout, at growing intervals. A request with a text that is not
// UTF-8 is not sent: kInvalidArgument, as CheckTexts().
class Client {
 public:
  // Waits for `connect_timeout` at most, and for `refused_max` where nothing listens. Errors:
  // kUnavailable.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const ClientOptions& options, absl::Duration connect_timeout,
      absl::Duration refused_max = absl::InfiniteDuration());
  virtual ~Client() = default;

  virtual const ClientOptions& options() const = 0;
  // `name`: the file whose rights are asked for; empty: the caller's rights at most.
  virtual absl::StatusOr<v1::GetServerResponse> GetServer(const std::string& name) = 0;
  absl::StatusOr<v1::GetServerResponse> GetServer() { return GetServer(""); }
  virtual absl::StatusOr<v1::GetUsageResponse> GetUsage(const v1::GetUsageRequest&) = 0;
  virtual absl::StatusOr<v1::ListFilesResponse> ListFiles(const v1::ListFilesRequest&) = 0;
  // `timeout` matters with `settle`.
  virtual absl::StatusOr<v1::FileStatus> GetFile(const v1::GetFileRequest&,
                                                 absl::Duration timeout) = 0;
  virtual absl::StatusOr<v1::FileStatus> AdoptFile(const v1::AdoptFileRequest&) = 0;
  virtual absl::StatusOr<v1::ListVersionsResponse> ListVersions(const v1::ListVersionsRequest&) = 0;
  virtual absl::StatusOr<v1::Version> GetVersion(const v1::GetVersionRequest&) = 0;
  virtual absl::StatusOr<v1::Version> FindVersion(const v1::FindVersionRequest&) = 0;
  virtual absl::StatusOr<v1::TagVersionResponse> TagVersion(const v1::TagVersionRequest&) = 0;
  virtual absl::StatusOr<v1::UntagVersionResponse> UntagVersion(const v1::UntagVersionRequest&) = 0;
  virtual absl::StatusOr<v1::Version> RollbackVersion(const v1::RollbackVersionRequest&) = 0;
  // `timeout`: either may cost a copy of the file.
  virtual absl::StatusOr<v1::Version> ForkVersion(const v1::ForkVersionRequest&,
                                                  absl::Duration timeout) = 0;
  virtual absl::StatusOr<v1::PromoteVersionResponse> PromoteVersion(
      const v1::PromoteVersionRequest&, absl::Duration timeout) = 0;
  // `timeout` must exceed the request's own wait.
  virtual absl::StatusOr<v1::CommitVersionResponse> CommitVersion(const v1::CommitVersionRequest&,
                                                                  absl::Duration timeout) = 0;
  virtual absl::StatusOr<v1::MirrorCheck> RecordCheck(const v1::RecordCheckRequest&) = 0;
  virtual absl::StatusOr<v1::FileStatus> MoveFile(const v1::MoveFileRequest&) = 0;
  virtual absl::StatusOr<v1::FileStatus> SetFileOwner(const v1::SetFileOwnerRequest&) = 0;
  virtual absl::StatusOr<v1::RemovedFile> RemoveFile(const v1::RemoveFileRequest&) = 0;
  virtual absl::StatusOr<v1::ListRemovedFilesResponse> ListRemovedFiles(
      const v1::ListRemovedFilesRequest&) = 0;
  virtual absl::StatusOr<v1::FileStatus> UndeleteFile(const v1::UndeleteFileRequest&) = 0;
  // `timeout` must exceed the request's own.
  virtual absl::StatusOr<v1::WaitForCutResponse> WaitForCut(const v1::WaitForCutRequest&,
                                                            absl::Duration timeout) = 0;
  // Calls `sink` for each message; a failed sink cancels the stream and is returned.
  virtual absl::Status ReadVersion(
      const v1::ReadVersionRequest&,
      absl::FunctionRef<absl::Status(const v1::ReadVersionResponse&)> sink) = 0;
  virtual absl::Status MapVersion(
      const v1::MapVersionRequest&,
      absl::FunctionRef<absl::Status(const v1::MapVersionResponse&)> sink) = 0;
  virtual absl::Status ListChanges(
      const v1::ListChangesRequest&,
      absl::FunctionRef<absl::Status(const v1::ListChangesResponse&)> sink) = 0;
  virtual absl::Status PruneVersions(
      const v1::PruneVersionsRequest&,
      absl::FunctionRef<absl::Status(const v1::PruneVersionsResponse&)> sink) = 0;
  // `timeout`: the first page costs a look at all rows of the index.
  virtual absl::StatusOr<v1::GetHistoryStatsResponse> GetHistoryStats(
      const v1::GetHistoryStatsRequest&, absl::Duration timeout) = 0;
  virtual absl::Status VerifyHistory(
      const v1::VerifyHistoryRequest&,
      absl::FunctionRef<absl::Status(const v1::VerifyHistoryResponse&)> sink) = 0;
  virtual absl::Status DigestFile(
      const v1::DigestFileRequest&,
      absl::FunctionRef<absl::Status(const v1::DigestFileResponse&)> sink) = 0;
  virtual absl::StatusOr<std::unique_ptr<MirrorStream>> OpenMirrorStream() = 0;
  virtual absl::Status ReadSnapshot(
      const v1::ReadSnapshotRequest&,
      absl::FunctionRef<absl::Status(const v1::ReadSnapshotResponse&)> sink) = 0;
  virtual absl::Status CloseSnapshot(const v1::CloseSnapshotRequest&) = 0;
  // Does not wait for the server: an error comes from the stream.
  virtual std::unique_ptr<FollowStream> FollowFile(const v1::FollowFileRequest&) = 0;
};

}  // namespace h5mirror::rpc

#endif  // H5MIRROR_RPC_CLIENT_H_
