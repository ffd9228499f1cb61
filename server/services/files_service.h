// The Files service; see proto/h5mirror/v1/files.proto.
#ifndef H5MIRROR_SERVER_SERVICES_FILES_SERVICE_H_
#define H5MIRROR_SERVER_SERVICES_FILES_SERVICE_H_

#include "absl/functional/function_ref.h"
#include "h5mirror/v1/files.grpc.pb.h"
#include "server/calls/call.h"
#include "server/calls/stream_call.h"

namespace h5mirror::server {

// Thread-safe.
class FilesService final : public v1::Files::WithRawCallbackMethod_DigestFile<v1::Files::Service> {
 public:
  // Removed files can be undeleted for `removed_keep`.
  FilesService(const ServiceEnvironment& environment, absl::Duration removed_keep)
      : environment_(environment), removed_keep_(removed_keep) {}

  // ---- For any door. The caller has been admitted, with the right to read. ----

  // True: nobody waits for the answer any more.
  using IsCancelled = absl::FunctionRef<bool()>;
  // As ListFiles: the files that `principal` may read.
  absl::Status List(IsCancelled is_cancelled, const Principal& principal,
                    const v1::ListFilesRequest& request, v1::ListFilesResponse& response);
  // As GetFile, without `settle`.
  absl::StatusOr<v1::FileStatus> GetStatus(const std::string& name);

  // ---- Of gRPC ----

  grpc::Status ListFiles(grpc::ServerContext* context, const v1::ListFilesRequest* request,
                         v1::ListFilesResponse* response) override;
  grpc::Status GetFile(grpc::ServerContext* context, const v1::GetFileRequest* request,
                       v1::GetFileResponse* response) override;
  grpc::Status AdoptFile(grpc::ServerContext* context, const v1::AdoptFileRequest* request,
                         v1::AdoptFileResponse* response) override;
  // ---- file_digests.cc ----
  StreamReactor* DigestFile(grpc::CallbackServerContext* context,
                            const grpc::ByteBuffer* request) override;
  // ---- file_checks.cc ----
  grpc::Status RecordCheck(grpc::ServerContext* context, const v1::RecordCheckRequest* request,
                           v1::RecordCheckResponse* response) override;
  // ---- file_names.cc ----
  grpc::Status MoveFile(grpc::ServerContext* context, const v1::MoveFileRequest* request,
                        v1::MoveFileResponse* response) override;
  grpc::Status SetFileOwner(grpc::ServerContext* context, const v1::SetFileOwnerRequest* request,
                            v1::SetFileOwnerResponse* response) override;
  grpc::Status RemoveFile(grpc::ServerContext* context, const v1::RemoveFileRequest* request,
                          v1::RemoveFileResponse* response) override;
  grpc::Status ListRemovedFiles(grpc::ServerContext* context,
                                const v1::ListRemovedFilesRequest* request,
                                v1::ListRemovedFilesResponse* response) override;
  grpc::Status UndeleteFile(grpc::ServerContext* context, const v1::UndeleteFileRequest* request,
                            v1::UndeleteFileResponse* response) override;

 private:
  class DigestParts;

  // At most `count` files behind the name `after`.
  absl::StatusOr<std::vector<store::FileSummary>> ListVisible(IsCancelled is_cancelled,
                                                              const Principal& principal,
                                                              const std::string& directory,
                                                              std::string after, size_t count);
  // For an empty page. kNotFound: the caller may read nothing below `directory`, so that it must
  // look as one that is not there.
  absl::Status CheckNotHidden(IsCancelled is_cancelled, const Principal& principal,
                              const std::string& directory);
  // The files of a page that are in one of the states that the request names, or that are forks, or
  // all with their details: a look at each file.
  absl::Status ListByLook(IsCancelled is_cancelled, const Principal& principal,
                          const v1::ListFilesRequest& request, int limit,
                          v1::ListFilesResponse& response);
  // Adds the details of `file`. False: the file is gone, or `request` does not ask for it.
  absl::StatusOr<bool> Describe(const v1::ListFilesRequest& request, const store::FileSummary& file,
                                v1::FileSummary& summary);
  bool MayRead(const Principal& principal, const std::string& name) const;
  absl::Status Get(const grpc::ServerContext& context, const v1::GetFileRequest& request,
                   v1::GetFileResponse& response);
  absl::StatusOr<v1::FileStatus> StatusOf(store::File& file);
  absl::Status ListRemoved(const Principal& principal, const v1::ListRemovedFilesRequest& request,
                           v1::ListRemovedFilesResponse& response);
  absl::Status Undelete(const grpc::ServerContext& context, const Principal& principal,
                        const v1::UndeleteFileRequest& request, v1::UndeleteFileResponse& response);
  absl::StatusOr<v1::FileStatus> StatusOfName(const std::string& name);
  // The same, of a change that was made. An error says nothing of other servers: a client would
  // make the change again there.
  absl::Status TellDone(const std::string& name, v1::FileStatus& told);
  absl::StatusOr<Bytes16> FileIdOf(const std::string& name);

  const ServiceEnvironment environment_;
  const absl::Duration removed_keep_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SERVICES_FILES_SERVICE_H_
