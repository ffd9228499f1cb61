#include "base/free_threads.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror {
namespace {

using testing::HasSubstr;

// The exit code of a child in which `body` has run; -1: a signal ended it.
template <typename Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(FreeThreadsTest, ThreadsAreFreeAgainAfterTheLook) {
  EXPECT_GE(ThreadsOfGrpc(), 14u);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(CanStartThreads(ThreadsOfGrpc()));
}

TEST(FreeThreadsTest, AProgramAtTheLimitOfItsUserHasNone) {
  const int code = InChild([] {
    if (getuid() == 0 && setuid(54321) != 0) return 2;  // Root has no such limit.
    const rlimit one = {1, 1};
    if (setrlimit(RLIMIT_NPROC, &one) != 0) return 2;
    return CanStartThreads(1) || !CanStartThreads(0) ? 1 : 0;
  });
  EXPECT_EQ(code, 0);
}

TEST(FreeThreadsTest, TheTextNamesTheNumberAndTheWayOut) {
  EXPECT_THAT(TooFewThreads(14),
              HasSubstr("fewer than 14 threads are left to the program: raise `ulimit -u`"));
}

}  // namespace
}  // namespace h5mirror
