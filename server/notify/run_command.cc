#include "server/notify/run_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/errno_status.h"
#include "base/owned_fd.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr size_t kOutputBytesMax = 4096;
constexpr absl::Duration kTermGrace = absl::Seconds(2);
constexpr absl::Duration kKillGrace = absl::Seconds(5);
constexpr int kPollMs = 20;
constexpr size_t kStuckMax = 8;

absl::Duration Now() { return SystemClock().Monotonic(); }

// Variables of systemd and its watchdog are not for the program.
bool IsOurs(std::string_view entry) {
  constexpr std::string_view kNames[] = {"NOTIFY_SOCKET=", "WATCHDOG_PID=", "WATCHDOG_USEC=",
                                         "LISTEN_PID=",    "LISTEN_FDS=",   "LISTEN_FDNAMES="};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [entry](std::string_view name) { return entry.starts_with(name); });
}

// An array of C strings with a nullptr at its end, and their texts.
class Words {
 public:
  explicit Words(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
  }
  Words(const Words&) = delete;
  char** data() { return pointers_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
};

std::vector<std::string> EnvironmentWith(const std::vector<std::string>& more) {
  std::vector<std::string> all = more;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view name(*entry, strcspn(*entry, "=") + 1);
    const bool is_set = std::any_of(more.begin(), more.end(),
                                    [name](const auto& each) { return each.starts_with(name); });
    if (!is_set && !IsOurs(*entry)) all.emplace_back(*entry);
  }
  return all;
}

struct Pipe {
  OwnedFd ours;    // does not block
  OwnedFd theirs;  // above the three that the program gets
};

enum class Direction { kToProgram, kFromProgram };

absl::StatusOr<Pipe> MakePipe(Direction direction) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoToStatus(errno, "make a pipe");
  OwnedFd read_end(ends[0]);
  OwnedFd write_end(ends[1]);
  OwnedFd& ours = direction == Direction::kToProgram ? write_end : read_end;
  OwnedFd& theirs = direction == Direction::kToProgram ? read_end : write_end;
  OwnedFd moved(fcntl(theirs.get(), F_DUPFD_CLOEXEC, 3));
  if (!moved.valid() || fcntl(ours.get(), F_SETFL, O_NONBLOCK) != 0) {
    return ErrnoToStatus(errno, "make a pipe");
  }
  return Pipe{std::move(ours), std::move(moved)};
}

class Spawner {
 public:
  Spawner(const Pipe& in, const Pipe& out) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, in.theirs.get(), 0);
    posix_spawn_file_actions_adddup2(&actions_, out.theirs.get(), 1);
    posix_spawn_file_actions_adddup2(&actions_, out.theirs.get(), 2);
    posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    for (const int number : {SIGPIPE, SIGXFSZ, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM}) {
      sigaddset(&signals, number);
    }
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Spawner() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Spawner(const Spawner&) = delete;

  absl::StatusOr<pid_t> Spawn(const CommandRequest& request) {
    Words arguments(request.command);
    Words environment(EnvironmentWith(request.environment));
    pid_t pid = 0;
    const int error = posix_spawn(&pid, request.command[0].c_str(), &actions_, &attributes_,
                                  arguments.data(), environment.data());
    if (error != 0) return ErrnoToStatus(error, StrCat("start ", request.command[0]));
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// A program that runs, with its input and output.
class Running {
 public:
  Running(pid_t pid, std::string_view input, OwnedFd in, OwnedFd out)
      : pid_(pid), input_(input), in_(std::move(in)), out_(std::move(out)) {
    if (input_.empty()) in_.Reset();
  }
  Running(const Running&) = delete;

  // Waits some 20 ms at most. False: it has ended.
  bool Tend() {
    pollfd polls[2] = {{in_.get(), POLLOUT, 0}, {out_.get(), POLLIN, 0}};
    if (poll(polls, 2, kPollMs) > 0) {
      if (polls[0].revents != 0) Feed();
      if (polls[1].revents != 0) Drain();
    }
    return !HasEnded();
  }
  bool TendUntil(absl::Duration deadline, const std::atomic<bool>* cancel) {
    while (Tend()) {
      if (Now() >= deadline || (cancel != nullptr && cancel->load())) return false;
    }
    return true;
  }
  // Ends the program by force. False: even SIGKILL has not ended it, for instance while it waits
  // for a dead disk.
  bool Kill() {
    kill(-pid_, SIGTERM);
    if (TendUntil(Now() + kTermGrace, nullptr)) {
      kill(-pid_, SIGKILL);  // The rest of its group.
      return true;
    }
    kill(-pid_, SIGKILL);
    return TendUntil(Now() + kKillGrace, nullptr);
  }
  absl::StatusOr<CommandEnd> End() {
    Drain();
    if (!code_.has_value()) return absl::InternalError("its exit code is not known");
    return CommandEnd{*code_, std::move(output_)};
  }

 private:
  void Feed() {
    const ssize_t written = write(in_.get(), input_.data(), input_.size());
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (written > 0) input_.remove_prefix(static_cast<size_t>(written));
    // An error: it does not read, which is its own affair.
    if (written < 0 || input_.empty()) in_.Reset();
  }

  void Drain() {
    char block[4096];
    // A bound, for one that says more than we can read.
    for (int i = 0; i < 64 && out_.valid(); ++i) {
      const ssize_t got = read(out_.get(), block, sizeof block);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0) return out_.Reset();
      const size_t room = kOutputBytesMax - output_.size();
      output_.append(block, std::min(static_cast<size_t>(got), room));
    }
  }

  bool HasEnded() {
    int status = 0;
    const pid_t got = waitpid(pid_, &status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR)) return false;
    // ECHILD: somebody ignores SIGCHLD, and the kernel has thrown the code away.
    if (got == pid_) code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
  }

  const pid_t pid_;
  std::string_view input_;
  OwnedFd in_;
  OwnedFd out_;
  std::string output_;
  std::optional<int> code_;
};

// Programs that not even SIGKILL has ended. More and more of them would take all processes that
// this one may have.
class Stuck {
 public:
  static Stuck& Get() {
    static auto& stuck = *new Stuck();
    return stuck;
  }
  void Add(pid_t pid) {
    const absl::MutexLock lock(&mutex_);
    pids_.push_back(pid);
  }
  // Reaps those that have ended since.
  bool HasRoom() {
    const absl::MutexLock lock(&mutex_);
    std::erase_if(pids_, [](pid_t pid) { return waitpid(pid, nullptr, WNOHANG) != 0; });
    return pids_.size() < kStuckMax;
  }

 private:
  absl::Mutex mutex_;
  std::vector<pid_t> pids_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<CommandEnd> RunCommand(const CommandRequest& request) {
  if (!Stuck::Get().HasRoom()) {
    return absl::ResourceExhaustedError(
        StrCat(request.command[0], ": ", kStuckMax, " programs that were killed have not ended"));
  }
  H5M_ASSIGN_OR_RETURN(Pipe in, MakePipe(Direction::kToProgram));
  H5M_ASSIGN_OR_RETURN(Pipe out, MakePipe(Direction::kFromProgram));
  H5M_ASSIGN_OR_RETURN(const pid_t pid, Spawner(in, out).Spawn(request));
  in.theirs.Reset();
  out.theirs.Reset();
  Running running(pid, request.input, std::move(in.ours), std::move(out.ours));
  if (running.TendUntil(Now() + request.timeout, request.cancel)) return running.End();
  const bool is_cancelled = request.cancel != nullptr && request.cancel->load();
  const bool has_ended = running.Kill();
  if (!has_ended) Stuck::Get().Add(pid);
  const std::string what =
      StrCat(request.command[0], ": ", is_cancelled ? "stopped" : "not done in time, killed",
             has_ended ? "" : ", and it still runs");
  return is_cancelled ? absl::CancelledError(what) : absl::DeadlineExceededError(what);
}

}  // namespace h5mirror::server
