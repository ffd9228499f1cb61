#include "rpc/unix_socket_rights.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::rpc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class UnixSocketRightsTest : public testing::Test {
 protected:
  UnixSocketRightsTest() {
    std::string path =
        (std::filesystem::path(testing::TempDir()) / "h5mirror-sock-XXXXXX").string();
    directory_ = mkdtemp(path.data());
    chmod(directory_.c_str(), 0755);
    options_.server = options_.target = "unix:" + Socket();
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, Socket().c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~UnixSocketRightsTest() override {
    close(fd_);
    chmod(directory_.c_str(), 0755);
    std::filesystem::remove_all(directory_);
  }

  std::string Socket() const { return (directory_ / "sock").string(); }

  // Of a process that no permission passes over. "OK", or "CODE: message".
  std::string Asked() const {
    if (geteuid() != 0) return CheckMayOpenSocket(options_).ToString();
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
      const std::string text = CheckMayOpenSocket(options_).ToString();
      _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 2);
    }
    close(ends[1]);
    std::string text(4096, '\0');
    const ssize_t got = read(ends[0], text.data(), text.size());
    close(ends[0]);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    text.resize(got < 0 ? 0 : static_cast<size_t>(got));
    return text;
  }

  std::filesystem::path directory_;
  ClientOptions options_;
  int fd_ = -1;
};

TEST_F(UnixSocketRightsTest, ASocketForOthersIsRefusedWithItsPermissions) {
  chmod(Socket().c_str(), 0060);
  EXPECT_THAT(Asked(), AllOf(HasSubstr("PERMISSION_DENIED: no connection to unix:"),
                             HasSubstr("you may not open this socket (s---rw---- "),
                             HasSubstr("): join the group "),
                             HasSubstr(", or have the server's socket_mode changed")));
}

TEST_F(UnixSocketRightsTest, AGroupThatMayNotEitherIsNotNamedAsTheWay) {
  chmod(Socket().c_str(), 0000);
  EXPECT_THAT(Asked(), AllOf(HasSubstr("(s--------- "), Not(HasSubstr("join the group")),
                             HasSubstr("): have the server's socket_mode changed")));
}

TEST_F(UnixSocketRightsTest, ADirectoryOnTheWayIsNamed) {
  chmod(Socket().c_str(), 0666);
  chmod(directory_.c_str(), 0000);
  EXPECT_THAT(Asked(), HasSubstr("you may not enter " + directory_.string()));
}

TEST_F(UnixSocketRightsTest, OthersAreNotKeptFromTrying) {
  chmod(Socket().c_str(), 0666);
  EXPECT_EQ(Asked(), "OK");
  unlink(Socket().c_str());
  EXPECT_EQ(Asked(), "OK") << "a server that starts makes it";
  options_.target = "dns:///localhost:7447";
  EXPECT_EQ(Asked(), "OK");
}

}  // namespace
}  // namespace h5mirror::rpc
