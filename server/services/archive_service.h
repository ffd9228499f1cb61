// The Archive service; see proto/h5mirror/v1/archive.proto.
#ifndef H5MIRROR_SERVER_SERVICES_ARCHIVE_SERVICE_H_
#define H5MIRROR_SERVER_SERVICES_ARCHIVE_SERVICE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "h5mirror/v1/archive.grpc.pb.h"
#include "onion_store/object_store.h"
#include "server/calls/call.h"
#include "server/history/archive_keeper.h"

namespace h5mirror::server {

// Thread-safe. A call that archives holds a thread of gRPC; callers with the right are few.
class ArchiveService final : public v1::Archive::Service {
 public:
  // Finds the archive that has the objects of the file `name`; null: there is none. Errors: as
  // Store::OpenFile().
  using Finder =
      std::function<absl::StatusOr<std::shared_ptr<store::ObjectStore>>(const std::string& name)>;

  // `keeper` must outlive this, and what `find` uses.
  ArchiveService(const ServiceEnvironment& environment, ArchiveKeeper& keeper, Finder find)
      : environment_(environment), keeper_(keeper), find_(std::move(find)) {}

  grpc::Status ArchiveHistory(grpc::ServerContext* context,
                              const v1::ArchiveHistoryRequest* request,
                              grpc::ServerWriter<v1::ArchiveHistoryResponse>* writer) override;
  grpc::Status GetArchive(grpc::ServerContext* context, const v1::GetArchiveRequest* request,
                          v1::GetArchiveResponse* response) override;

 private:
  // Errors: as Store::OpenFile(); kCancelled: the caller has gone. Where the archive cannot be
  // asked, or has too many objects of the file to count, the fields stay unset.
  absl::Status CountObjects(const grpc::ServerContext& context, const std::string& name,
                            v1::GetArchiveResponse& response);

  const ServiceEnvironment environment_;
  ArchiveKeeper& keeper_;
  const Finder find_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SERVICES_ARCHIVE_SERVICE_H_
