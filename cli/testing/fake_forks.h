// The part of the fake server that forks and promotes.
#ifndef H5MIRROR_CLI_TESTING_FAKE_FORKS_H_
#define H5MIRROR_CLI_TESTING_FAKE_FORKS_H_

#include "cli/testing/fake_server.h"

namespace h5mirror::tools {

// As the server, but that a promotion asks only for the version that was forked, and that a fork
// changes all of its bytes. Thread-safe. `state` must outlive it.
class FakeForks : public v1::Versions::Service {
 public:
  explicit FakeForks(FakeServer::State& state) : forks_state_(state) {}

  grpc::Status ForkVersion(grpc::ServerContext* context, const v1::ForkVersionRequest* request,
                           v1::ForkVersionResponse* response) override;
  grpc::Status PromoteVersion(grpc::ServerContext* context,
                              const v1::PromoteVersionRequest* request,
                              v1::PromoteVersionResponse* response) override;

 private:
  FakeServer::State& forks_state_;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_TESTING_FAKE_FORKS_H_
