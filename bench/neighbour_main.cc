// bench_neighbour: two callers of one server.
//
//   bench_neighbour commit --server HOST:PORT --token @FILE --count 400
//   bench_neighbour flood --server HOST:PORT --token @FILE --threads 16
//
// `commit` writes 64 KiB and commits, again and again, and prints the seconds of each as a line of
// JSON. `flood` calls, opens sessions and writes as fast as it goes, until its standard input ends,
// and prints the results.
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "base/hex.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "grpcpp/grpcpp.h"
#include "nlohmann/json.hpp"
#include "rpc/channel.h"
#include "rpc/client.h"
#include "rpc/client_options.h"
#include "rpc/status.h"

namespace h5mirror::bench {
namespace {

constexpr absl::Duration kConnectTime = absl::Seconds(60);
constexpr uint64_t kCommitBytes = 64 << 10;
constexpr uint64_t kFloodBytes = 1 << 20;
constexpr char kPlace[] = "/bench/neighbour/";

struct Options {
  rpc::ClientSettings client;
  std::string server;
  std::string token;
  int count = 400;
  int threads = 16;
};

v1::MirrorFileRequest OpenRequest(const std::string& name) {
  v1::MirrorFileRequest request;
  v1::OpenSession& open = *request.mutable_open();
  open.mutable_protocol()->set_oldest(rpc::kProtocolOldest);
  open.mutable_protocol()->set_newest(rpc::kProtocolNewest);
  open.set_name(name);
  open.set_session_id(ToByteString(RandomBytes16()));
  open.set_intent(v1::INTENT_CREATE);
  open.mutable_origin()->set_machine_id("bench");
  open.mutable_origin()->set_path(StrCat(kPlace, name));
  return request;
}

v1::MirrorFileRequest WriteRequest(uint64_t bytes, char fill) {
  v1::MirrorFileRequest request;
  v1::Writes& writes = *request.mutable_writes();
  writes.add_offset(0);
  writes.add_length(bytes);
  writes.set_data(std::string(bytes, fill));
  return request;
}

v1::MirrorFileRequest CommitRequest(uint64_t seq, uint64_t size_bytes) {
  v1::MirrorFileRequest request;
  v1::Barrier& barrier = *request.mutable_barrier();
  barrier.set_seq(seq);
  barrier.set_kind(v1::BARRIER_KIND_COMMIT);
  barrier.set_size_bytes(size_bytes);
  return request;
}

absl::Status AwaitDurable(rpc::MirrorStream& stream, uint64_t seq) {
  while (true) {
    H5M_ASSIGN_OR_RETURN(const v1::MirrorFileResponse answer, stream.Receive());
    if (answer.has_cut_durable() && answer.cut_durable().seq() >= seq) return absl::OkStatus();
  }
}

absl::Status Commit(const rpc::ClientOptions& options, int count) {
  H5M_ASSIGN_OR_RETURN(const auto client, rpc::Client::Connect(options, kConnectTime));
  H5M_ASSIGN_OR_RETURN(const auto stream, client->OpenMirrorStream());
  H5M_RETURN_IF_ERROR(stream->Send(OpenRequest(StrCat("honest-", getpid(), ".h5"))));
  H5M_RETURN_IF_ERROR(stream->Receive().status());
  nlohmann::json seconds = nlohmann::json::array();
  for (int i = 1; i <= count; ++i) {
    const auto seq = static_cast<uint64_t>(i);
    const absl::Time start = absl::Now();
    H5M_RETURN_IF_ERROR(stream->Send(WriteRequest(kCommitBytes, static_cast<char>(i))));
    H5M_RETURN_IF_ERROR(stream->Send(CommitRequest(seq, kCommitBytes)));
    H5M_RETURN_IF_ERROR(AwaitDurable(*stream, seq));
    seconds.push_back(absl::ToDoubleSeconds(absl::Now() - start));
  }
  std::cout << seconds.dump() << std::endl;
  return stream->Finish();
}

// The results of the neighbour's attempts.
struct Tally {
  std::atomic<uint64_t> done = 0;
  std::atomic<uint64_t> refused = 0;
  std::atomic<uint64_t> failed = 0;

  void Count(const absl::Status& status) {
    ++(status.ok() ? done : absl::IsResourceExhausted(status) ? refused : failed);
  }
};

class Flood {
 public:
  Flood(const rpc::ClientOptions& options, int threads) : options_(options), threads_(threads) {}

  // Runs until the standard input ends.
  void Run() {
    std::vector<std::thread> threads;
    for (int i = 0; i < threads_; ++i) {
      // Of four, two call, one opens and one writes.
      threads.emplace_back([this, i] {
        i % 4 == 3 ? WriteOn(i) : i % 4 == 2 ? OpenOn(i) : CallOn();
      });
    }
    std::cout << "floods" << std::endl;
    for (std::string line; std::getline(std::cin, line);) continue;
    ends_ = true;
    for (std::thread& thread : threads) thread.join();
    const nlohmann::json result = {
        {"calls", AsJson(calls_)}, {"sessions", AsJson(sessions_)}, {"writes", AsJson(writes_)}};
    std::cout << result.dump() << std::endl;
  }

 private:
  static nlohmann::json AsJson(const Tally& tally) {
    return {{"done", tally.done.load()},
            {"refused", tally.refused.load()},
            {"failed", tally.failed.load()}};
  }

  // Not rpc::Client: it waits after a refusal.
  void CallOn() {
    const auto stub = v1::Server::NewStub(rpc::MakeChannel(options_));
    while (!ends_) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
      rpc::Authorize(options_, context);
      v1::GetServerRequest request;
      request.mutable_protocol()->set_oldest(rpc::kProtocolOldest);
      request.mutable_protocol()->set_newest(rpc::kProtocolNewest);
      v1::GetServerResponse response;
      calls_.Count(rpc::FromGrpc(stub->GetServer(&context, request, &response)));
    }
  }

  void OpenOn(int number) {
    const auto client = rpc::Client::Connect(options_, kConnectTime);
    if (!client.ok()) return;
    for (int i = 0; !ends_; ++i) sessions_.Count(OpenOne(**client, StrCat("o", number, ".h5")));
  }
  static absl::Status OpenOne(rpc::Client& client, const std::string& name) {
    H5M_ASSIGN_OR_RETURN(const auto stream, client.OpenMirrorStream());
    H5M_RETURN_IF_ERROR(stream->Send(OpenRequest(name)));
    H5M_RETURN_IF_ERROR(stream->Receive().status());
    return stream->Finish();
  }

  void WriteOn(int number) {
    const auto client = rpc::Client::Connect(options_, kConnectTime);
    if (!client.ok()) return;
    while (!ends_) writes_.Count(WriteMany(**client, StrCat("w", number, ".h5")));
  }
  absl::Status WriteMany(rpc::Client& client, const std::string& name) {
    H5M_ASSIGN_OR_RETURN(const auto stream, client.OpenMirrorStream());
    H5M_RETURN_IF_ERROR(stream->Send(OpenRequest(name)));
    H5M_RETURN_IF_ERROR(stream->Receive().status());
    for (uint64_t seq = 1; !ends_; ++seq) {
      H5M_RETURN_IF_ERROR(stream->Send(WriteRequest(kFloodBytes, static_cast<char>(seq))));
      H5M_RETURN_IF_ERROR(stream->Send(CommitRequest(seq, kFloodBytes)));
      H5M_RETURN_IF_ERROR(AwaitDurable(*stream, seq));
      writes_.Count(absl::OkStatus());
    }
    return absl::OkStatus();  // Destroyed unfinished, so cancelled.
  }

  const rpc::ClientOptions options_;
  const int threads_;
  std::atomic<bool> ends_ = false;
  Tally calls_, sessions_, writes_;
};

absl::Status Run(Options& options, bool floods) {
  options.client.server = options.server;
  options.client.token = options.token;
  options.client.ca = "";
  H5M_ASSIGN_OR_RETURN(const rpc::ClientOptions client, rpc::ResolveClientOptions(options.client));
  if (!floods) return Commit(client, options.count);
  Flood(client, options.threads).Run();
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Commits, or keeps a server busy.", "bench_neighbour");
  app.require_subcommand(1);
  app.fallthrough();
  app.add_option("--server", options.server, "HOST:PORT")->required();
  app.add_option("--token", options.token, "the token, as @FILE")->required();
  CLI::App* commit = app.add_subcommand("commit", "Commit 64 KiB again and again");
  commit->add_option("--count", options.count, "so often");
  CLI::App* flood = app.add_subcommand("flood", "Call, open and write until standard input ends");
  flood->add_option("--threads", options.threads, "so many at once");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(options, flood->parsed());
  if (status.ok()) return 0;
  std::cerr << "bench_neighbour: " << status << "\n";
  return 1;
}

}  // namespace
}  // namespace h5mirror::bench

int main(int argc, char** argv) { return h5mirror::bench::Main(argc, argv); }
