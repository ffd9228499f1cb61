// The Versions service; see proto/h5mirror/v1/versions.proto.
#ifndef H5MIRROR_SERVER_VERSIONS_SERVICE_H_
#define H5MIRROR_SERVER_VERSIONS_SERVICE_H_

#include "h5mirror/v1/versions.grpc.pb.h"
#include "server/call.h"

namespace h5mirror::server {

// Thread-safe.
class VersionsService final : public v1::Versions::Service {
 public:
  explicit VersionsService(const ServiceEnvironment& environment) : environment_(environment) {}

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
  grpc::Status ReadVersion(grpc::ServerContext* context, const v1::ReadVersionRequest* request,
                           grpc::ServerWriter<v1::ReadVersionResponse>* writer) override;
  grpc::Status RollbackVersion(grpc::ServerContext* context,
                               const v1::RollbackVersionRequest* request,
                               v1::RollbackVersionResponse* response) override;

 private:
  absl::StatusOr<std::shared_ptr<store::File>> Open(const std::string& name);
  absl::Status List(const v1::ListVersionsRequest& request, v1::ListVersionsResponse& response);
  absl::Status Find(const v1::FindVersionRequest& request, v1::FindVersionResponse& response);
  absl::Status Tag(const Principal& principal, const v1::TagVersionRequest& request,
                   v1::TagVersionResponse& response);
  absl::Status Map(const v1::MapVersionRequest& request,
                   grpc::ServerWriter<v1::MapVersionResponse>& writer);
  absl::Status Read(const v1::ReadVersionRequest& request,
                    grpc::ServerWriter<v1::ReadVersionResponse>& writer);
  absl::Status Rollback(const grpc::ServerContext& context, const Principal& principal,
                        const v1::RollbackVersionRequest& request,
                        v1::RollbackVersionResponse& response);

  const ServiceEnvironment environment_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_VERSIONS_SERVICE_H_
