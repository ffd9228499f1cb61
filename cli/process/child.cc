#include "cli/process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "absl/time/clock.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "cli/process/io.h"

namespace h5mirror::tools {
namespace {

constexpr size_t kOutputBytesMax = 1 << 20;
constexpr int kPollMs = 10;

// A null-terminated array of C strings over `texts`.
std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> ChangedEnvironment(const EnvironmentChanges& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string name(*entry, strcspn(*entry, "="));
    if (!changes.contains(name)) result.emplace_back(*entry);
  }
  for (const auto& [name, value] : changes) {
    if (value.has_value()) result.push_back(StrCat(name, "=", *value));
  }
  return result;
}

// The arguments of posix_spawnp that are the same for all children.
class Spawner {
 public:
  Spawner() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~Spawner() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;

  posix_spawn_file_actions_t& actions() { return actions_; }
  void SetSignalMask(const sigset_t& mask) {
    posix_spawnattr_setsigmask(&attributes_, &mask);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }

  absl::StatusOr<pid_t> Spawn(std::vector<std::string> command, const EnvironmentChanges& changes) {
    std::vector<std::string> environment = ChangedEnvironment(changes);
    pid_t pid = 0;
    const int error = posix_spawnp(&pid, command[0].c_str(), &actions_, &attributes_,
                                   Pointers(command).data(), Pointers(environment).data());
    if (error != 0) return ErrnoToStatus(error, StrCat("start ", command[0]));
    return pid;
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

int CodeOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return CodeOf(status);
}

struct Pipe {
  OwnedFd read_end;
  OwnedFd write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoToStatus(errno, "make a pipe");
  return Pipe{OwnedFd(ends[0]), OwnedFd(ends[1])};
}

// Ends with `parent`, and becomes `arguments`; returns where that fails, with errno. In a child of
// fork(), so it calls nothing that takes a lock.
void BecomeTied(pid_t parent, const sigset_t& mask, char* const* arguments,
                char* const* environment) {
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
  if (getppid() != parent) _exit(128 + SIGKILL);  // It ended before it was asked for.
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  execvpe(arguments[0], arguments, environment);
}

// As Spawner::Spawn() with that signal mask, but the child ends with us: posix_spawn knows no way
// to tell it. A failed exec comes back through a pipe that a good one closes.
absl::StatusOr<pid_t> SpawnTied(std::vector<std::string> command, const EnvironmentChanges& changes,
                                const sigset_t& mask) {
  H5M_ASSIGN_OR_RETURN(Pipe failure, MakePipe());
  std::vector<std::string> variables = ChangedEnvironment(changes);
  const std::vector<char*> arguments = Pointers(command);
  const std::vector<char*> environment = Pointers(variables);
  const pid_t us = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    BecomeTied(us, mask, arguments.data(), environment.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t told = write(failure.write_end.get(), &error, sizeof(error));
    _exit(127);
  }
  if (pid < 0) return ErrnoToStatus(errno, StrCat("start ", command[0]));
  failure.write_end = OwnedFd();
  int error = 0;
  ssize_t got = 0;
  do got = read(failure.read_end.get(), &error, sizeof(error));
  while (got < 0 && errno == EINTR);
  if (got <= 0) return pid;
  WaitFor(pid);
  return ErrnoToStatus(error, StrCat("start ", command[0]));
}

// Nullopt: it goes on.
std::optional<int> CodeIfEnded(pid_t pid) {
  int status = 0;
  const pid_t got = waitpid(pid, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) return std::nullopt;
  return CodeOf(status);
}

// Takes what is there, without a wait.
void ReadWhatIsThere(pollfd* from, std::string* text) {
  char buffer[4096];
  // A bound, for one that says more than we can read.
  for (size_t taken = 0; from->fd >= 0 && taken < kOutputBytesMax;) {
    const ssize_t n = read(from->fd, buffer, sizeof(buffer));
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) from->fd = -1;
    if (n <= 0) return;
    taken += static_cast<size_t>(n);
    if (text->size() < kOutputBytesMax) text->append(buffer, static_cast<size_t>(n));
  }
}

// Reads both until the child has ended; nullopt: it goes on at the deadline. Processes that it
// leaves running may hold the pipes open.
std::optional<int> ReadUntilEnd(pid_t pid, std::array<pollfd, 2> polls,
                                std::array<std::string*, 2> texts, absl::Time deadline) {
  while (true) {
    // Asks before the last read, so that the pipes then hold all of the child's output.
    const std::optional<int> code = CodeIfEnded(pid);
    for (size_t i = 0; i < polls.size(); ++i) ReadWhatIsThere(&polls[i], texts[i]);
    if (code.has_value() || absl::Now() >= deadline) return code;
    poll(polls.data(), polls.size(), kPollMs);
  }
}

// Blocks what RunInOurPlace waits for, as long as it lives.
class SignalWait {
 public:
  SignalWait() {
    sigemptyset(&waited_);
    for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM}) {
      sigaddset(&waited_, number);
    }
    pthread_sigmask(SIG_BLOCK, &waited_, &before_);
  }
  ~SignalWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalWait(const SignalWait&) = delete;
  SignalWait& operator=(const SignalWait&) = delete;

  const sigset_t& before() const { return before_; }

  int WaitForEnd(pid_t pid) {
    while (true) {
      siginfo_t info = {};
      const int number = sigwaitinfo(&waited_, &info);
      if (number == SIGCHLD) {
        int status = 0;
        if (waitpid(pid, &status, WNOHANG) == pid) return CodeOf(status);
      } else if (number > 0 && info.si_code <= 0) {
        kill(pid, number);  // From a process. The terminal's (SI_KERNEL) reach it anyway.
      }
    }
  }

 private:
  sigset_t waited_;
  sigset_t before_;
};

}  // namespace

absl::StatusOr<ChildResult> RunChild(const std::vector<std::string>& command,
                                     const EnvironmentChanges& changes, absl::Duration timeout) {
  ChildResult result;
  H5M_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  H5M_ASSIGN_OR_RETURN(Pipe err, MakePipe());
  Spawner spawner;
  posix_spawn_file_actions_addopen(&spawner.actions(), 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&spawner.actions(), out.write_end.get(), 1);
  posix_spawn_file_actions_adddup2(&spawner.actions(), err.write_end.get(), 2);
  H5M_ASSIGN_OR_RETURN(const pid_t pid, spawner.Spawn(command, changes));
  out.write_end = OwnedFd();
  err.write_end = OwnedFd();
  for (const OwnedFd* end : {&out.read_end, &err.read_end}) fcntl(end->get(), F_SETFL, O_NONBLOCK);
  const std::array<pollfd, 2> polls{pollfd{out.read_end.get(), POLLIN, 0},
                                    pollfd{err.read_end.get(), POLLIN, 0}};
  const std::optional<int> code =
      ReadUntilEnd(pid, polls, {&result.out, &result.err}, absl::Now() + timeout);
  if (!code.has_value()) {
    kill(pid, SIGKILL);
    WaitFor(pid);
    return absl::DeadlineExceededError(
        StrCat(command[0], ": not done after ", absl::FormatDuration(timeout), ", killed"));
  }
  result.code = *code;
  return result;
}

Helper::Helper(int pid, OwnedFd input, OwnedFd output)
    : pid_(pid), input_(std::move(input)), output_(std::move(output)) {}

Helper::~Helper() {
  input_ = OwnedFd();
  WaitFor(pid_);
}

void Helper::Kill() { kill(pid_, SIGKILL); }

absl::StatusOr<std::unique_ptr<Helper>> Helper::Start(const std::vector<std::string>& command) {
  H5M_ASSIGN_OR_RETURN(Pipe in, MakePipe());
  H5M_ASSIGN_OR_RETURN(Pipe out, MakePipe());
  Spawner spawner;
  posix_spawn_file_actions_adddup2(&spawner.actions(), in.read_end.get(), 0);
  posix_spawn_file_actions_adddup2(&spawner.actions(), out.write_end.get(), 1);
  H5M_ASSIGN_OR_RETURN(const pid_t pid, spawner.Spawn(command, {}));
  return std::unique_ptr<Helper>(new Helper(pid, std::move(in.write_end), std::move(out.read_end)));
}

absl::StatusOr<std::string> Helper::ReadLine(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  std::string line;
  while (line.size() < kOutputBytesMax) {
    pollfd poll_fd{output_.get(), POLLIN, 0};
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - absl::Now());
    if (left_ms <= 0) return absl::DeadlineExceededError("the helper did not answer in time");
    if (poll(&poll_fd, 1, static_cast<int>(std::min<int64_t>(left_ms, 1000))) <= 0) continue;
    char byte = 0;
    const ssize_t got = read(output_.get(), &byte, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::UnavailableError("the helper ended without an answer");
    if (byte == '\n') return line;
    line.push_back(byte);
  }
  return absl::InternalError("the helper said too much");
}

absl::StatusOr<int> RunToEnd(const std::vector<std::string>& command,
                             const EnvironmentChanges& changes) {
  Spawner spawner;
  H5M_ASSIGN_OR_RETURN(const pid_t pid, spawner.Spawn(command, changes));
  return WaitFor(pid);
}

absl::StatusOr<int> RunInOurPlace(const std::vector<std::string>& command,
                                  const EnvironmentChanges& changes, WhenWeEnd when_we_end) {
  SignalWait wait;
  if (when_we_end == WhenWeEnd::kEnds) {
    H5M_ASSIGN_OR_RETURN(const pid_t tied, SpawnTied(command, changes, wait.before()));
    return wait.WaitForEnd(tied);
  }
  Spawner spawner;
  spawner.SetSignalMask(wait.before());
  H5M_ASSIGN_OR_RETURN(const pid_t pid, spawner.Spawn(command, changes));
  return wait.WaitForEnd(pid);
}

}  // namespace h5mirror::tools
