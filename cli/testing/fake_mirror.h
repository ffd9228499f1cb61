// The Mirror service of a FakeServer: sessions with one or more commits.
#ifndef H5MIRROR_CLI_TESTING_FAKE_MIRROR_H_
#define H5MIRROR_CLI_TESTING_FAKE_MIRROR_H_

#include <memory>

#include "cli/testing/fake_server.h"

namespace h5mirror::tools {

// `state` must outlive it.
std::unique_ptr<grpc::Service> NewFakeMirror(FakeServer::State& state);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_TESTING_FAKE_MIRROR_H_
