#include "client_vfd/plugin/host/standard_error.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

// Whether `act` is true in a child, whose descriptors are its own.
bool InChild(const std::function<bool()>& act) {
  const pid_t child = fork();
  if (child == 0) _exit(act() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Makes a new pipe descriptor 2, as a program does that sends its standard error elsewhere.
bool BecomesAPipe() {
  int ends[2];
  return pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO;
}

TEST(StandardErrorTest, ItStaysWhileItIsTheSameFile) {
  EXPECT_TRUE(InChild([] {
    if (!BecomesAPipe()) return false;
    const StandardError first;
    const int kept = dup(STDERR_FILENO);
    close(STDERR_FILENO);
    if (first.IsThere()) return false;
    return dup2(kept, STDERR_FILENO) == STDERR_FILENO && first.IsThere();
  }));
}

TEST(StandardErrorTest, AFileThatGotItsNumberAtFirstIsNone) {
  EXPECT_TRUE(InChild([] {
    close(STDERR_FILENO);
    const StandardError first;
    return !first.IsThere() && open("/dev/null", O_WRONLY) == STDERR_FILENO && !first.IsThere();
  }));
}

TEST(StandardErrorTest, NorIsOneThatGotItLater) {
  EXPECT_TRUE(InChild([] {
    if (!BecomesAPipe()) return false;
    const StandardError first;
    close(STDERR_FILENO);
    return open("/dev/null", O_WRONLY) == STDERR_FILENO && !first.IsThere();
  }));
}

TEST(StandardErrorTest, NorIsOneThatIsClosedAtAnExec) {
  EXPECT_TRUE(InChild([] {
    close(STDERR_FILENO);
    if (open("/dev/null", O_WRONLY | O_CLOEXEC) != STDERR_FILENO) return false;
    const StandardError first;
    return !first.IsThere();
  }));
}

}  // namespace
}  // namespace h5mirror::vfd
