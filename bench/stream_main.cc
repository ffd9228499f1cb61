// bench_stream: all bytes of a file's newest version in one gRPC stream, thrown away as they come.
// It measures a link and this gRPC, without HDF5 and without our cache.
//
//   bench_stream --server HOST:PORT --name run.h5
//
// Waits for a line after `ready`; one line of JSON on stdout at the end.
#include <cstdio>
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "bench/timing.h"
#include "grpcpp/client_context.h"
#include "h5mirror/v1/versions.grpc.pb.h"
#include "nlohmann/json.hpp"
#include "rpc/channel.h"
#include "rpc/client_options.h"
#include "rpc/reading_channel.h"
#include "rpc/status.h"

namespace h5mirror::bench {
namespace {

struct Options {
  std::string server;
  std::string name;
};

absl::StatusOr<uint64_t> ReadAll(const rpc::ClientOptions& client, v1::Versions::Stub& stub,
                                 const Options& options, uint64_t length_bytes) {
  v1::ReadVersionRequest request;
  request.set_name(options.name);
  request.set_length_bytes(length_bytes);
  grpc::ClientContext context;
  rpc::Authorize(client, context);
  const auto stream = stub.ReadVersion(&context, request);
  v1::ReadVersionResponse answer;
  uint64_t bytes = 0;
  while (stream->Read(&answer)) bytes += answer.data().size();
  H5M_RETURN_IF_ERROR(rpc::FromGrpc(stream->Finish()));
  return bytes;
}

absl::Status Run(const Options& options) {
  rpc::ClientSettings settings;
  settings.server = options.server;
  H5M_ASSIGN_OR_RETURN(const rpc::ClientOptions client, rpc::ResolveClientOptions(settings));
  const auto stub = v1::Versions::NewStub(rpc::MakeReadingChannel(client));
  // This only makes the connection.
  H5M_RETURN_IF_ERROR(ReadAll(client, *stub, options, 1).status());
  const double cpu_before_s = CpuSeconds();
  WaitForStart();
  const double start_s = NowSeconds();
  H5M_ASSIGN_OR_RETURN(const uint64_t bytes, ReadAll(client, *stub, options, 0));
  const double total_s = NowSeconds() - start_s;
  std::cout << nlohmann::json{{"open_s", 0.0},
                              {"felt_s", total_s},
                              {"total_s", total_s},
                              {"bytes", bytes},
                              {"cpu_before_s", cpu_before_s}}
            << std::endl;
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Reads a file's newest version in one stream, and prints the time.");
  app.add_option("--server", options.server)->required();
  app.add_option("--name", options.name)->required();
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_stream: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace h5mirror::bench

int main(int argc, char** argv) { return h5mirror::bench::Main(argc, argv); }
