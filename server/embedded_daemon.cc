#include "server/embedded_daemon.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/embedded/embedded_store.h"
#include "server/mirror_server.h"
#include "server/settings/logging.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

// Another `h5mirror` is soon done with the file; a program that writes it is not.
constexpr absl::Duration kPatience = absl::Seconds(2);
constexpr absl::Duration kEndOfCalls = absl::Seconds(1);

void Tell(const absl::Status& status) {
  std::string line = "ready\n";
  if (!status.ok()) {
    line = StrCat("error ", static_cast<int>(status.code()), " ",
                  absl::StrReplaceAll(status.message(), {{"\n", "; "}}), "\n");
  }
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, line.data(), line.size());
}

void WaitForEndOfInput() {
  char byte;
  while (true) {
    const ssize_t got = read(STDIN_FILENO, &byte, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) return;
  }
}

absl::StatusOr<std::unique_ptr<store::EmbeddedStore>> OpenStore(const std::filesystem::path& head,
                                                                const Config& config) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(head, error);
  if (error) return absl::NotFoundError(StrCat(head.string(), ": ", error.message()));
  H5M_ASSIGN_OR_RETURN(
      auto lease,
      store::EmbeddedLease::Take(Env::Posix(), real, LockKind::kExclusive, "h5mirror", kPatience));
  H5M_ASSIGN_OR_RETURN(const bool has_history, lease->HasHistory());
  if (!has_history) {
    return absl::NotFoundError(StrCat(real.string(), " has no history beside it (", lease->name(),
                                      ".h5m): write it with server=embedded"));
  }
  store::EmbeddedOptions options;
  options.memory_max_bytes = config.memory_max_bytes / 2;
  options.background_threads = config.background_threads;
  options.guard = store::HeadGuard::kApply;
  H5M_ASSIGN_OR_RETURN(auto store, store::EmbeddedStore::Open(std::move(lease), options));
  // Errors of the file are told before any verb begins.
  H5M_RETURN_IF_ERROR(store->OpenFile(store->name()).status());
  if (store->outside_change() != 0) {
    spdlog::warn("{}", store::OutsideChangeNotice(real, store->outside_change()));
  }
  return store;
}

}  // namespace

ExitCode RunEmbedded(const std::filesystem::path& head, const Config& config) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // Nothing durable is lost, and the next open goes on.
  if (const absl::Status status = StartLogging(config); !status.ok()) {
    Tell(status);
    return ExitCode::kUsage;
  }
  SystemClock clock;
  auto store = OpenStore(head, config);
  if (!store.ok()) {
    Tell(store.status());
    return ExitCode::kFailed;
  }
  auto server = MirrorServer::Start(config, **store, clock);
  Tell(server.status());
  if (!server.ok()) return ExitCode::kCannotListen;
  WaitForEndOfInput();
  (*server)->Stop(kEndOfCalls).IgnoreError();  // Only workers of HTTP are late, and there are none.
  const absl::Status closed = (*store)->Close(config.stop_timeout);
  if (closed.ok()) return ExitCode::kOk;
  spdlog::error("{}: {}", head.string(), ToStd(closed.message()));
  return ExitCode::kStoppedEarly;
}

}  // namespace h5mirror::server
