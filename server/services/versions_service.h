// The Versions service; see proto/h5mirror/v1/versions.proto.
#ifndef H5MIRROR_SERVER_SERVICES_VERSIONS_SERVICE_H_
#define H5MIRROR_SERVER_SERVICES_VERSIONS_SERVICE_H_

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "absl/synchronization/mutex.h"
#include "h5mirror/v1/versions.grpc.pb.h"
#include "rpc/version_spec.h"
#include "server/calls/call.h"
#include "server/calls/file_bytes.h"
#include "server/calls/stream_call.h"
#include "server/state/recent_files.h"

namespace h5mirror::server {

// kInvalidArgument: negative.
absl::Status CheckVersion(int64_t version);

// Thread-safe. Calls that stream or wait hold no thread while they do.
class VersionsService final : public v1::Versions::WithRawCallbackMethod_ReadVersion<
                                  v1::Versions::WithRawCallbackMethod_MapVersion<
                                      v1::Versions::WithRawCallbackMethod_ListChanges<
                                          v1::Versions::WithRawCallbackMethod_PruneVersions<
                                              v1::Versions::WithRawCallbackMethod_VerifyHistory<
                                                  v1::Versions::WithCallbackMethod_CommitVersion<
                                                      v1::Versions::Service>>>>>> {
 public:
  explicit VersionsService(const ServiceEnvironment& environment)
      : environment_(environment), recent_(environment.clock) {}

  // OnTimer() lets go of files that are no longer read, Stop() of all, before the store is closed.
  void OnTimer() { recent_.OnTimer(); }
  void Stop() { recent_.Clear(); }

  // For a door other than gRPC's: the version that `spec` names.
  // Errors: as store::File::FindVersionTagged() and its like, and OpenVersion().
  absl::StatusOr<std::unique_ptr<FileBytes>> OpenBytes(const std::string& name,
                                                       const rpc::VersionSpec& spec);

  // As ListVersions, for any door.
  absl::Status List(const v1::ListVersionsRequest& request, v1::ListVersionsResponse& response);

  grpc::Status ListVersions(grpc::ServerContext* context, const v1::ListVersionsRequest* request,
                            v1::ListVersionsResponse* response) override;
  grpc::Status GetVersion(grpc::ServerContext* context, const v1::GetVersionRequest* request,
                          v1::GetVersionResponse* response) override;
  grpc::Status FindVersion(grpc::ServerContext* context, const v1::FindVersionRequest* request,
                           v1::FindVersionResponse* response) override;
  grpc::Status TagVersion(grpc::ServerContext* context, const v1::TagVersionRequest* request,
                          v1::TagVersionResponse* response) override;
  grpc::Status UntagVersion(grpc::ServerContext* context, const v1::UntagVersionRequest* request,
                            v1::UntagVersionResponse* response) override;
  grpc::Status RollbackVersion(grpc::ServerContext* context,
                               const v1::RollbackVersionRequest* request,
                               v1::RollbackVersionResponse* response) override;
  // In version_forks.cc.
  grpc::Status ForkVersion(grpc::ServerContext* context, const v1::ForkVersionRequest* request,
                           v1::ForkVersionResponse* response) override;
  grpc::Status PromoteVersion(grpc::ServerContext* context,
                              const v1::PromoteVersionRequest* request,
                              v1::PromoteVersionResponse* response) override;
  // In stats_service.cc.
  grpc::Status GetHistoryStats(grpc::ServerContext* context,
                               const v1::GetHistoryStatsRequest* request,
                               v1::GetHistoryStatsResponse* response) override;
  // In version_commit.cc.
  grpc::ServerUnaryReactor* CommitVersion(grpc::CallbackServerContext* context,
                                          const v1::CommitVersionRequest* request,
                                          v1::CommitVersionResponse* response) override;
  // In read_service.cc.
  StreamReactor* ReadVersion(grpc::CallbackServerContext* context,
                             const grpc::ByteBuffer* request) override;
  // In version_map.cc.
  StreamReactor* MapVersion(grpc::CallbackServerContext* context,
                            const grpc::ByteBuffer* request) override;
  StreamReactor* ListChanges(grpc::CallbackServerContext* context,
                             const grpc::ByteBuffer* request) override;
  // In prune_service.cc.
  StreamReactor* PruneVersions(grpc::CallbackServerContext* context,
                               const grpc::ByteBuffer* request) override;
  // In verify_service.cc.
  StreamReactor* VerifyHistory(grpc::CallbackServerContext* context,
                               const grpc::ByteBuffer* request) override;

 private:
  class CommitCall;
  class ReadParts;
  class MapParts;
  class ChangeParts;
  class PruneSteps;
  class VerifySteps;

  absl::StatusOr<std::shared_ptr<store::File>> Open(const std::string& name);
  // Opens a file for calls that readers repeat.
  absl::StatusOr<std::shared_ptr<store::File>> OpenToRead(const std::string& name);
  absl::Status Find(const v1::FindVersionRequest& request, v1::FindVersionResponse& response);
  absl::Status Tag(const Principal& principal, const v1::TagVersionRequest& request,
                   v1::TagVersionResponse& response);
  absl::Status Untag(const Principal& principal, const v1::UntagVersionRequest& request,
                     v1::UntagVersionResponse& response);
  // Held from CheckTakesTag() to the change of the tag: no other call gives the tag to a version in
  // between. All tags of this server go through here.
  absl::Mutex& TagMutex(const std::string& name);
  // CheckOwnTag() with the caller's rights to the file.
  absl::Status CheckTakesTag(const Principal& principal, store::File& file, const std::string& tag,
                             store::VersionNumber to);
  absl::Status Stats(const grpc::ServerContext& context, const v1::GetHistoryStatsRequest& request,
                     v1::GetHistoryStatsResponse& response);
  absl::Status Rollback(const grpc::ServerContext& context, const Principal& principal,
                        const v1::RollbackVersionRequest& request,
                        v1::RollbackVersionResponse& response);
  absl::Status Fork(const grpc::ServerContext& context, const Callers::Ticket& ticket,
                    const v1::ForkVersionRequest& request, v1::ForkVersionResponse& response);
  absl::Status Promote(const grpc::ServerContext& context, const Callers::Ticket& ticket,
                       const v1::PromoteVersionRequest& request,
                       v1::PromoteVersionResponse& response);
  // Takes the lease of the file that a promotion goes into. Of a dry run it only looks at it: a
  // writer must not be kept from it.
  absl::StatusOr<std::optional<CallLease>> LeaseFor(const grpc::ServerContext& context,
                                                    const Principal& principal,
                                                    const v1::PromoteVersionRequest& request);

  const ServiceEnvironment environment_;
  RecentFiles recent_;
  std::array<absl::Mutex, 16> tag_mutexes_;  // by file; a change of a tag may wait for a disk
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SERVICES_VERSIONS_SERVICE_H_
