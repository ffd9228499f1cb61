#include "base/standard_streams.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <iostream>

#include "gtest/gtest.h"

namespace h5mirror {
namespace {

// The result of `act` in a child, which has descriptors of its own.
int InChild(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) _exit(act());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreamsTest, NoFileGetsADescriptorOfOutput) {
  EXPECT_EQ(0, InChild([] {
              for (int fd = 0; fd <= STDERR_FILENO; ++fd) close(fd);
              HoldStandardStreams();
              const int opened = open("/", O_RDONLY | O_CLOEXEC);
              return opened > STDERR_FILENO ? 0 : 1;
            }));
}

TEST(StandardStreamsTest, WhatIsPrintedGoesNowhere) {
  EXPECT_EQ(EBADF, InChild([] {
              close(STDERR_FILENO);
              HoldStandardStreams();
              return write(STDERR_FILENO, "x", 1) < 0 ? errno : 0;
            }));
}

TEST(StandardStreamsTest, ChildrenHaveThemClosedAsBefore) {
  EXPECT_EQ(0, InChild([] {
              close(STDOUT_FILENO);
              HoldStandardStreams();
              const int flags = fcntl(STDOUT_FILENO, F_GETFD);
              return flags >= 0 && (flags & FD_CLOEXEC) != 0 ? 0 : 1;
            }));
}

TEST(StandardStreamsTest, OutputThatIsLostIsAnErrorWithItsReason) {
  EXPECT_EQ(0, InChild([] {
              if (!FlushStandardOutput().ok()) return 1;
              const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
              if (full < 0 || dup2(full, STDOUT_FILENO) < 0) return 2;
              std::cout << "lost";
              const absl::Status first = FlushStandardOutput();
              const bool names_it = first.message() ==
                                    "standard output could not be written: No space left on device";
              return names_it && !FlushStandardOutput().ok() ? 0 : 3;
            }));
}

TEST(StandardStreamsTest, OnesThatAreOpenStayAsTheyAre) {
  EXPECT_EQ(0, InChild([] {
              int ends[2];
              if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0) return 1;
              close(STDIN_FILENO);
              HoldStandardStreams();
              char byte = 0;
              if (write(STDOUT_FILENO, "x", 1) != 1 || read(ends[0], &byte, 1) != 1) return 2;
              return byte == 'x' ? 0 : 3;
            }));
}

}  // namespace
}  // namespace h5mirror
