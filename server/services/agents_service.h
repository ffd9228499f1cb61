// The Agents service; see proto/h5mirror/v1/agents.proto.
#ifndef H5MIRROR_SERVER_SERVICES_AGENTS_SERVICE_H_
#define H5MIRROR_SERVER_SERVICES_AGENTS_SERVICE_H_

#include "h5mirror/v1/agents.grpc.pb.h"
#include "server/calls/call.h"
#include "server/door/users_by_name.h"

namespace h5mirror::server {

// Thread-safe.
class AgentsService final : public v1::Agents::Service {
 public:
  explicit AgentsService(const ServiceEnvironment& environment)
      : environment_(environment), users_(environment.authenticator.users(), environment.clock) {}

  grpc::Status CheckReader(grpc::ServerContext* context, const v1::CheckReaderRequest* request,
                           v1::CheckReaderResponse* response) override;

 private:
  // Whether the tables let the user of that name read the file. Errors: kUnavailable.
  absl::StatusOr<bool> MayRead(const std::string& user, const std::string& name);

  const ServiceEnvironment environment_;
  UsersByName users_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SERVICES_AGENTS_SERVICE_H_
