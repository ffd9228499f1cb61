// The Versions service; see proto/h5mirror/v1/versions.proto.
#ifndef H5MIRROR_SERVER_VERSIONS_SERVICE_H_
#define H5MIRROR_SERVER_VERSIONS_SERVICE_H_

#include "h5mirror/v1/versions.grpc.pb.h"
#include "server/call.h"
#include "server/recent_files.h"
#include "server/worker_pool.h"

namespace h5mirror::server {

// kInvalidArgument: negative.
absl::Status CheckVersion(int64_t version);

// Thread-safe.
class VersionsService final : public v1::Versions::Service {
 public:
  explicit VersionsService(const ServiceEnvironment& environment)
      : environment_(environment),
        recent_(environment.clock),
        readers_(ReaderCount(), "read ahead") {}

  // Lets go of files that were read and are not any more; of all, before the store is closed.
  void OnTimer() { recent_.OnTimer(); }
  void Stop() { recent_.Clear(); }

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
  grpc::Status MapVersion(grpc::ServerContext* context, const v1::MapVersionRequest* request,
                          grpc::ServerWriter<v1::MapVersionResponse>* writer) override;
  grpc::Status ListChanges(grpc::ServerContext* context, const v1::ListChangesRequest* request,
                           grpc::ServerWriter<v1::ListChangesResponse>* writer) override;
  grpc::Status RollbackVersion(grpc::ServerContext* context,
                               const v1::RollbackVersionRequest* request,
                               v1::RollbackVersionResponse* response) override;
  grpc::Status CommitVersion(grpc::ServerContext* context, const v1::CommitVersionRequest* request,
                             v1::CommitVersionResponse* response) override;
  // In read_service.cc.
  grpc::Status ReadVersion(grpc::ServerContext* context, const v1::ReadVersionRequest* request,
                           grpc::ServerWriter<v1::ReadVersionResponse>* writer) override;
  // In prune_service.cc.
  grpc::Status PruneVersions(grpc::ServerContext* context, const v1::PruneVersionsRequest* request,
                             grpc::ServerWriter<v1::PruneVersionsResponse>* writer) override;
  // In stats_service.cc.
  grpc::Status GetHistoryStats(grpc::ServerContext* context,
                               const v1::GetHistoryStatsRequest* request,
                               v1::GetHistoryStatsResponse* response) override;
  // In verify_service.cc.
  grpc::Status VerifyHistory(grpc::ServerContext* context, const v1::VerifyHistoryRequest* request,
                             grpc::ServerWriter<v1::VerifyHistoryResponse>* writer) override;

 private:
  static int ReaderCount();
  absl::StatusOr<std::shared_ptr<store::File>> Open(const std::string& name);
  // For calls that readers repeat.
  absl::StatusOr<std::shared_ptr<store::File>> OpenToRead(const std::string& name);
  absl::Status List(const v1::ListVersionsRequest& request, v1::ListVersionsResponse& response);
  absl::Status Find(const v1::FindVersionRequest& request, v1::FindVersionResponse& response);
  absl::Status Tag(const Principal& principal, const v1::TagVersionRequest& request,
                   v1::TagVersionResponse& response);
  absl::Status Map(const v1::MapVersionRequest& request,
                   grpc::ServerWriter<v1::MapVersionResponse>& writer);
  absl::Status Changes(const grpc::ServerContext& context, const v1::ListChangesRequest& request,
                       grpc::ServerWriter<v1::ListChangesResponse>& writer);
  absl::Status Read(const v1::ReadVersionRequest& request,
                    grpc::ServerWriter<v1::ReadVersionResponse>& writer);
  absl::Status Prune(const grpc::ServerContext& context, const Principal& principal,
                     const v1::PruneVersionsRequest& request,
                     grpc::ServerWriter<v1::PruneVersionsResponse>& writer);
  absl::Status Stats(const grpc::ServerContext& context, const v1::GetHistoryStatsRequest& request,
                     v1::GetHistoryStatsResponse& response);
  absl::Status Verify(const grpc::ServerContext& context, const v1::VerifyHistoryRequest& request,
                      grpc::ServerWriter<v1::VerifyHistoryResponse>& writer);
  absl::Status Rollback(const grpc::ServerContext& context, const Principal& principal,
                        const v1::RollbackVersionRequest& request,
                        v1::RollbackVersionResponse& response);
  absl::Status Commit(const grpc::ServerContext& context, const Principal& principal,
                      const v1::CommitVersionRequest& request, v1::CommitVersionResponse& response);

  const ServiceEnvironment environment_;
  RecentFiles recent_;
  WorkerPool readers_;  // of what long answers need next
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_VERSIONS_SERVICE_H_
