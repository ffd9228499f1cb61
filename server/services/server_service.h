// The Server service; see proto/h5mirror/v1/server.proto.
#ifndef H5MIRROR_SERVER_SERVICES_SERVER_SERVICE_H_
#define H5MIRROR_SERVER_SERVICES_SERVER_SERVICE_H_

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "h5mirror/v1/server.grpc.pb.h"
#include "server/calls/call.h"

namespace h5mirror::server {

// The facts about a server that it tells clients.
struct ServerFacts {
  std::string root;
  uint64_t memory_max_bytes = 0;
  absl::Time start_time;
  std::function<int()> session_count;  // thread-safe
};

// Thread-safe.
class ServerService final : public v1::Server::Service {
 public:
  ServerService(const ServiceEnvironment& environment, ServerFacts facts)
      : environment_(environment), facts_(std::move(facts)) {}

  grpc::Status GetServer(grpc::ServerContext* context, const v1::GetServerRequest* request,
                         v1::GetServerResponse* response) override;
  grpc::Status GetUsage(grpc::ServerContext* context, const v1::GetUsageRequest* request,
                        v1::GetUsageResponse* response) override;

 private:
  // The root and the load, which only callers see that may have a right to some file.
  void DescribeMachine(v1::GetServerResponse& response) const;

  const ServiceEnvironment environment_;
  const ServerFacts facts_;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SERVICES_SERVER_SERVICE_H_
