#include "server/notify/run_command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "absl/time/clock.h"
#include "base/owned_fd.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CommandRequest Shell(const std::string& script) { return {.command = {"/bin/sh", "-c", script}}; }

TEST(RunCommandTest, GivesInputAndEnvironmentAndTakesOutputAndCode) {
  CommandRequest request = Shell("cat; echo \" $H5MIRROR_EVENT\"; echo no >&2; exit 3");
  request.input = "{}";
  request.environment = {"H5MIRROR_EVENT=disk_low"};
  const auto end = RunCommand(request);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->code, 3);
  EXPECT_EQ(end->output, "{} disk_low\nno\n");
}

TEST(RunCommandTest, ArgumentsMeetNoShell) {
  const auto end = RunCommand({.command = {"/bin/echo", "$HOME; `id`", ""}});
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->output, "$HOME; `id` \n");
}

TEST(RunCommandTest, AProgramThatIsNotThereIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(RunCommand({.command = {"/nowhere/tell"}}).status()));
}

TEST(RunCommandTest, ASignalIsNoSuccess) {
  const auto end = RunCommand(Shell("kill -9 $$"));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->code, 137);
}

TEST(RunCommandTest, ItGetsNoDescriptorOfOurs) {
  const OwnedFd ours(open("/dev/null", O_RDONLY));  // Without O_CLOEXEC.
  const auto end = RunCommand(Shell("ls /proc/self/fd"));
  ASSERT_TRUE(end.ok()) << end.status();
  // The last is that of `ls` itself, on the directory.
  EXPECT_EQ(end->output, "0\n1\n2\n3\n");
}

TEST(RunCommandTest, ItIsNoChildOfSystemdToTheOutside) {
  setenv("NOTIFY_SOCKET", "/run/x", 1);
  const auto end = RunCommand(Shell("echo [$NOTIFY_SOCKET]"));
  unsetenv("NOTIFY_SOCKET");
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->output, "[]\n");
}

TEST(RunCommandTest, ItIsKilledAfterItsTimeWithItsGroup) {
  CommandRequest request = Shell("sleep 1000 & echo $!; wait");
  request.timeout = absl::Milliseconds(300);
  const absl::Time start = absl::Now();
  EXPECT_TRUE(absl::IsDeadlineExceeded(RunCommand(request).status()));
  EXPECT_LT(absl::Now() - start, absl::Seconds(20));
}

TEST(RunCommandTest, OneThatIgnoresSigtermIsKilledToo) {
  CommandRequest request = Shell("trap '' TERM; while :; do sleep 1; done");
  request.timeout = absl::Milliseconds(300);
  EXPECT_TRUE(absl::IsDeadlineExceeded(RunCommand(request).status()));
}

TEST(RunCommandTest, AnotherThreadEndsIt) {
  std::atomic<bool> cancel = false;
  CommandRequest request = Shell("sleep 1000");
  request.timeout = absl::Hours(1);
  request.cancel = &cancel;
  std::thread canceller([&] { cancel = true; });
  EXPECT_TRUE(absl::IsCancelled(RunCommand(request).status()));
  canceller.join();
}

TEST(RunCommandTest, OutputIsBoundedAndNotWaitedFor) {
  const auto end = RunCommand(Shell("sleep 5 & head -c 1000000 /dev/zero | tr '\\0' x"));
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->output, std::string(4096, 'x'));
}

TEST(RunCommandTest, AProgramNeedNotReadItsInput) {
  CommandRequest request = Shell("exit 0");
  request.input.assign(1 << 20, 'x');
  signal(SIGPIPE, SIG_IGN);
  const auto end = RunCommand(request);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->code, 0);
}

TEST(RunCommandTest, WhereSigchldIsIgnoredNothingCountsAsDone) {
  const auto before = signal(SIGCHLD, SIG_IGN);
  const absl::Status status = RunCommand(Shell("exit 1")).status();
  signal(SIGCHLD, before);
  EXPECT_TRUE(absl::IsInternal(status)) << status;
}

}  // namespace
}  // namespace h5mirror::server
