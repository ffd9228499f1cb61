#include "client_vfd/plugin/host/held_stderr.h"

#include <sys/wait.h>

#include <functional>

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

// What `act` returns in a child, whose descriptors are its own.
int InChild(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) _exit(act());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int OpenOne() { return open("/", O_RDONLY | O_CLOEXEC); }

TEST(HeldStderrTest, NoFileGetsItsDescriptor) {
  EXPECT_EQ(0, InChild([] {
              close(STDERR_FILENO);
              const HeldStderr held;
              return OpenOne() > STDERR_FILENO ? 0 : 1;
            }));
}

TEST(HeldStderrTest, OtherClosedOnesAreUsedAsBefore) {
  EXPECT_EQ(0, InChild([] {
              for (int fd = 0; fd <= STDERR_FILENO; ++fd) close(fd);
              const HeldStderr held;
              return OpenOne() == 0 && OpenOne() == 1 && OpenOne() > STDERR_FILENO ? 0 : 1;
            }));
}

TEST(HeldStderrTest, AfterwardsItIsClosedAgain) {
  EXPECT_EQ(0, InChild([] {
              close(STDERR_FILENO);
              { const HeldStderr held; }
              return OpenOne() == STDERR_FILENO ? 0 : 1;
            }));
}

TEST(HeldStderrTest, OneThatCameMeanwhileStays) {
  EXPECT_EQ(0, InChild([] {
              int ends[2];
              if (pipe(ends) != 0) return 1;
              close(STDERR_FILENO);
              {
                const HeldStderr held;
                if (dup2(ends[1], STDERR_FILENO) < 0) return 2;
              }
              return write(STDERR_FILENO, "x", 1) == 1 ? 0 : 3;
            }));
}

TEST(HeldStderrTest, OneThatIsOpenStays) {
  EXPECT_EQ(0, InChild([] {
              int ends[2];
              if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) return 1;
              { const HeldStderr held; }
              return write(STDERR_FILENO, "x", 1) == 1 ? 0 : 2;
            }));
}

}  // namespace
}  // namespace h5mirror::vfd
