// The Files service; see proto/h5mirror/v1/files.proto.
#ifndef H5MIRROR_SERVER_FILES_SERVICE_H_
#define H5MIRROR_SERVER_FILES_SERVICE_H_

#include "h5mirror/v1/files.grpc.pb.h"
#include "server/call.h"

namespace h5mirror::server {

// Thread-safe.
class FilesService final : public v1::Files::Service {
 public:
  explicit FilesService(const ServiceEnvironment& environment) : environment_(environment) {}

  grpc::Status ListFiles(grpc::ServerContext* context, const v1::ListFilesRequest* request,
                         v1::ListFilesResponse* response) override;
  grpc::Status GetFile(grpc::ServerContext* context, const v1::GetFileRequest* request,
                       v1::GetFileResponse* response) override;
  grpc::Status DigestFile(grpc::ServerContext* context, const v1::DigestFileRequest* request,
                          grpc::ServerWriter<v1::DigestFileResponse>* writer) override;
  grpc::Status AdoptFile(grpc::ServerContext* context, const v1::AdoptFileRequest* request,
                         v1::AdoptFileResponse* response) override;

 private:
  absl::Status List(const v1::ListFilesRequest& request, v1::ListFilesResponse& response);
  absl::Status Get(const grpc::ServerContext& context, const v1::GetFileRequest& request,
                   v1::GetFileResponse& response);
  absl::Status Digest(const v1::DigestFileRequest& request,
                      grpc::ServerWriter<v1::DigestFileResponse>& writer);
  absl::StatusOr<v1::FileStatus> StatusOf(store::File& file);

  const ServiceEnvironment environment_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_FILES_SERVICE_H_
