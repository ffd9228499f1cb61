// bench_subscribers: many subscribers of one file, each with a connection of its own.
//
//   bench_subscribers --server HOST:PORT --name run.h5 --channels 100
//   bench_subscribers --digest FILE
//
// Prints `ready` once each holds the newest cut, follows until no writer has the file open, prints
// `followed`, and waits for a line. Then each subscriber reads the bytes of the last cut that it
// lacks. One line of JSON tells what each has, and how it fared.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "bench/subscription.h"
#include "nlohmann/json.hpp"

namespace h5mirror::bench {
namespace {

// A server needs time if a thousand clients connect at once.
constexpr absl::Duration kConnectTime = absl::Seconds(60);

struct Options {
  std::string server;
  std::string name;
  std::string digest_file;
  int channels = 1;
  Reads reads = Reads::kAll;
};

std::string Digest(std::string_view bytes) { return absl::StrFormat("%08x", Crc32c(bytes)); }

// The results of one subscriber.
struct Seen {
  absl::Status status;
  std::unique_ptr<Subscription> subscription;

  nlohmann::json AsJson() const {
    const SubscriptionCounts& counts = subscription->counts();
    return {{"cut", subscription->cut()}, {"digest", Digest(subscription->image())},
            {"cuts", counts.cuts},        {"passed_over", counts.passed_over},
            {"expired", counts.expired},  {"received_bytes", counts.received_bytes},
            {"refused", counts.refused}};
  }
};

absl::Status Follow(Seen& seen) {
  while (true) {
    H5M_ASSIGN_OR_RETURN(const bool more, seen.subscription->Next());
    if (!more) return absl::OkStatus();
  }
}

// The file's first cut may still be on its way.
absl::Status Subscribe(const Options& options, const rpc::ClientOptions& client, Seen& seen) {
  H5M_ASSIGN_OR_RETURN(seen.subscription,
                       Subscription::Open(client, options.name, options.reads, kConnectTime));
  const absl::Time give_up = absl::Now() + kConnectTime;
  while (true) {
    const absl::Status status = seen.subscription->Next().status();
    if (!absl::IsNotFound(status) || absl::Now() > give_up) return status;
    absl::SleepFor(absl::Milliseconds(50));
  }
}

// Calls `body` with each of `all`, each in a thread of its own. Returns the first error.
template <typename Body>
absl::Status InThreads(std::vector<Seen>& all, Body body) {
  std::vector<std::thread> threads;
  threads.reserve(all.size());
  for (Seen& seen : all) threads.emplace_back([&seen, &body] { seen.status = body(seen); });
  for (std::thread& thread : threads) thread.join();
  for (const Seen& seen : all) H5M_RETURN_IF_ERROR(seen.status);
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  rpc::ClientSettings settings;
  settings.server = options.server;
  H5M_ASSIGN_OR_RETURN(const rpc::ClientOptions client, rpc::ResolveClientOptions(settings));
  std::vector<Seen> all(static_cast<size_t>(options.channels));
  H5M_RETURN_IF_ERROR(InThreads(all, [&](Seen& seen) { return Subscribe(options, client, seen); }));
  std::cout << "ready" << std::endl;
  H5M_RETURN_IF_ERROR(InThreads(all, [](Seen& seen) { return Follow(seen); }));
  std::cout << "followed" << std::endl;
  std::string line;
  std::getline(std::cin, line);
  H5M_RETURN_IF_ERROR(InThreads(all, [](Seen& seen) { return seen.subscription->Complete(); }));
  nlohmann::json result = nlohmann::json::array();
  for (const Seen& seen : all) result.push_back(seen.AsJson());
  std::cout << result << std::endl;
  return absl::OkStatus();
}

absl::Status PrintDigest(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file) return absl::NotFoundError(StrCat("cannot read ", path));
  std::cout << Digest(bytes) << std::endl;
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Follows one file over many connections.");
  app.add_option("--server", options.server, "HOST:PORT");
  app.add_option("--name", options.name, "of the file on the server");
  app.add_option("--channels", options.channels, "how many")->check(CLI::Range(1, 10'000));
  app.add_flag_callback(
      "--metadata", [&options] { options.reads = Reads::kMetadata; },
      "read raw data at the end only");
  app.add_option("--digest", options.digest_file, "print the digest of this local file instead");
  CLI11_PARSE(app, argc, argv);
  const absl::Status status =
      options.digest_file.empty() ? Run(options) : PrintDigest(options.digest_file);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_subscribers: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace h5mirror::bench

int main(int argc, char** argv) { return h5mirror::bench::Main(argc, argv); }
