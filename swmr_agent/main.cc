// h5mirror-agent: readers of one host share their reads. See h5mirror-agent.1.md.
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/memory_group.h"
#include "base/printable_message.h"
#include "base/standard_streams.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "base/version.h"
#include "grpc/support/log.h"
#include "rpc/agent_socket.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/spdlog.h"
#include "swmr_agent/agent.h"
#include "swmr_agent/flags.h"
#include "swmr_agent/map_server.h"
#include "swmr_agent/service.h"
#include "swmr_agent/user_servers.h"

namespace h5mirror::agent {
namespace {

constexpr absl::Duration kSummaryEvery = absl::Minutes(1);
// For answers that are being given. gRPC waits as long for connections that nobody uses: their
// readers do not see that it wants to end. A call that is cut off is made again at the server.
// Memory beside the cache and a quarter of it: blocks in flight, gRPC.
constexpr uint64_t kMemoryBeside = 300 << 20;
constexpr absl::Duration kStopWait = absl::Seconds(1);

// Messages of up to a MiB come and go. By malloc's own settings each is new memory, and costs a
// fault for each page. 192 MiB for four readers: 102,000 faults and 0.43 s of CPU, with these
// 63,000 and 0.37 s. What an arena keeps is bounded, and so is the number of them.
void KeepMemoryOfMessages() {
  mallopt(M_ARENA_MAX, 2);
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
}

sigset_t OurSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

void StartLogging(const Config& config) {
  // The journal has times of its own.
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('v').set_pattern(
      getenv("JOURNAL_STREAM") != nullptr ? "%l: %v" : "%Y-%m-%dT%H:%M:%S.%e%z %l: %v");
  spdlog::set_formatter(std::move(formatter));
  spdlog::set_default_logger(spdlog::default_logger()->clone("h5mirror-agent"));
  spdlog::set_level(spdlog::level::from_str(config.log_level));
  spdlog::flush_on(spdlog::level::info);
  // Most "errors" of gRPC are broken connections.
  if (getenv("GRPC_VERBOSITY") == nullptr) {
    gpr_set_log_function([](gpr_log_func_args* message) {
      if (message->severity == GPR_LOG_SEVERITY_ERROR) spdlog::debug("grpc: {}", message->message);
    });
  }
}

void ServeUntilSignal(Agent& agent) {
  const sigset_t signals = OurSignals();
  const timespec second{1, 0};
  absl::Time told = absl::Now();
  std::string last;
  for (;;) {
    const int number = sigtimedwait(&signals, nullptr, &second);
    if (number > 0) {
      spdlog::info("signal {}: stopping; {}", number, agent.Summary());
      return;
    }
    agent.OnTimer();
    const std::string summary = agent.Summary();
    sd_notifyf(0, "WATCHDOG=1\nSTATUS=%s", summary.c_str());
    if (absl::Now() - told < kSummaryEvery || summary == last) continue;
    told = absl::Now();
    last = summary;
    spdlog::info("{}", summary);
  }
}

ExitCode Run(const Config& config) {
  StartLogging(config);
  const uint64_t cache = config.cache_bytes;
  if (const auto warning =
          MemoryLimitWarning("cache", cache, cache / 4 * 5 + kMemoryBeside, MemoryLimitOfGroup())) {
    spdlog::warn("{}", *warning);
  }
  Agent agent(config);
  const auto servers_of_users = UserServers::Listen(config.socket, config.socket_mode_bits, agent);
  if (!servers_of_users.ok()) {
    spdlog::error("{}", ToStd(servers_of_users.status().message()));
    return ExitCode::kCannotListen;
  }
  std::string servers;
  for (const rpc::ClientOptions& options : config.servers) StrAppend(&servers, " ", options.server);
  absl::StatusOr<std::unique_ptr<MapServer>> maps = MapServer::Listen(
      rpc::CutMapSocket(config.socket.string()), config.socket_mode_bits,
      {.map = [&agent](uid_t user,
                       const auto& question) { return FindMemory(agent, user, question); },
       .blocks = [&agent](uid_t user,
                          const auto& question) { return FindSharedBlocks(agent, user, question); },
       .open = [&agent](uid_t user,
                        const auto& question) { return OpenCut(agent, user, question); }});
  if (!maps.ok())
    spdlog::warn("readers cannot map memory, and read through gRPC: {}",
                 ToStd(maps.status().message()));
  spdlog::info("h5mirror-agent {} serves {} for{}", kVersion, config.socket.string(), servers);
  sd_notify(0, "READY=1");
  ServeUntilSignal(agent);
  sd_notify(0, "STOPPING=1");
  // A second signal ends the process where it stands: nothing is lost by that.
  const sigset_t signals = OurSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  unlink(config.socket.c_str());  // From here on readers go to the servers.
  maps = absl::CancelledError("stopping");
  (*servers_of_users)->Shutdown(absl::Now() + kStopWait);
  return ExitCode::kOk;
}

ExitCode Main(int argc, char** argv) {
  const ParsedFlags parsed = ParseFlags(argc, argv);
  if (parsed.exit) return *parsed.exit;
  const absl::StatusOr<Config> config = MakeConfig(parsed.settings);
  if (!config.ok()) {
    std::cerr << "h5mirror-agent: " << Printable(ToStd(config.status().message())) << "\n";
    return ExitCode::kUsage;
  }
  if (!parsed.check_config) return Run(*config);
  std::cout << "OK\n";
  return ExitCode::kOk;
}

}  // namespace
}  // namespace h5mirror::agent

int main(int argc, char** argv) {
  h5mirror::HoldStandardStreams();
#ifdef NDEBUG
  // Debian builds abseil with its deadlock detector on. Debug builds keep it.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  h5mirror::agent::KeepMemoryOfMessages();
  setenv("GRPC_EXPERIMENTS", "tcp_rcv_lowat,tcp_frame_size_tuning", /*overwrite=*/0);
  signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  const auto code = h5mirror::agent::Main(argc, argv);
  const absl::Status flushed = h5mirror::FlushStandardOutput();
  if (flushed.ok() || code != h5mirror::agent::ExitCode::kOk) return static_cast<int>(code);
  std::cerr << "h5mirror-agent: " << flushed.message() << "\n";
  return static_cast<int>(h5mirror::agent::ExitCode::kFailed);
}
