#include "base/write_signals.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>

#include "gtest/gtest.h"

namespace h5mirror {
namespace {

// The result of `act` in a child that SIGPIPE and SIGXFSZ would end; -1: one of them has ended it.
int InChild(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    _exit(act());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int PipeWithoutReader() {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  close(ends[0]);
  return ends[1];
}

TEST(WriteSignalBlockTest, APipeWithoutReaderIsAnErrorOnly) {
  EXPECT_EQ(EPIPE, InChild([] {
              const int end = PipeWithoutReader();
              const WriteSignalBlock block;
              return write(end, "x", 1) < 0 ? errno : 0;
            }));
}

TEST(WriteSignalBlockTest, TheLimitOfAFileIsAnErrorOnly) {
  const std::string path = (std::filesystem::path(testing::TempDir()) / "limited").string();
  EXPECT_EQ(EFBIG, InChild([&path] {
              const rlimit limit{1, 1};
              setrlimit(RLIMIT_FSIZE, &limit);
              const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
              const WriteSignalBlock block;
              if (write(fd, "x", 1) != 1) return 0;
              return write(fd, "x", 1) < 0 ? errno : 0;
            }));
}

TEST(WriteSignalBlockTest, TheProgramsOwnWritesEndItAsBefore) {
  EXPECT_EQ(-1, InChild([] {
    const int end = PipeWithoutReader();
    { const WriteSignalBlock block; }
    return write(end, "x", 1) < 0 ? errno : 0;
  }));
}

TEST(WriteSignalBlockTest, ASignalThatWasPendingBeforeStaysPending) {
  EXPECT_EQ(0, InChild([] {
              sigset_t pipe_signal;
              sigemptyset(&pipe_signal);
              sigaddset(&pipe_signal, SIGPIPE);
              pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
              raise(SIGPIPE);
              { const WriteSignalBlock block; }
              sigset_t pending;
              sigpending(&pending);
              return sigismember(&pending, SIGPIPE) == 1 ? 0 : 1;
            }));
}

}  // namespace
}  // namespace h5mirror
