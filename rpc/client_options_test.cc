#include "rpc/client_options.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/client_files.h"
#include "rpc/server_address.h"

namespace h5mirror::rpc {
namespace {

using ::testing::HasSubstr;

constexpr const char* kPem = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";

TEST(ServerAddressTest, FormsThatUsersWrite) {
  const std::tuple<const char*, const char*, bool> kCases[] = {
      {"node7", "dns:///node7:7447", false},
      {"node7.lab.org:80", "dns:///node7.lab.org:80", false},
      {"LocalHost", "dns:///LocalHost:7447", true},
      {"127.3.2.1:9", "dns:///127.3.2.1:9", true},
      {"[::1]", "dns:///[::1]:7447", true},
      {"[fe80::1]:9", "dns:///[fe80::1]:9", false},
      {"unix:/run/h5mirror.sock", "unix:/run/h5mirror.sock", true}};
  for (const auto& [text, target, loopback] : kCases) {
    const auto address = ParseServerAddress(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->target, target);
    EXPECT_EQ(address->loopback, loopback) << text;
  }
}

TEST(ServerAddressTest, RefusedOnesAreQuotedWithTheReason) {
  const std::pair<std::string, const char*> kCases[] = {
      {"", "it is empty"},        {"node7:", "the port is empty"},
      {"node7:0", "1 to 65535"},  {"node7:65536", "1 to 65535"},
      {"::1", "brackets"},        {"[::1", "']' is missing"},
      {"[::1]x", "only a port"},  {"[node7]:1", "not an IPv6 address"},
      {"a b", "not a host name"}, {"http://node7", "a URL is no address"},
      {"unix:", "path is empty"}, {"unix:/" + std::string(200, 'x'), "at most 107"}};
  for (const auto& [text, why] : kCases) {
    const auto address = ParseServerAddress(text);
    ASSERT_TRUE(absl::IsInvalidArgument(address.status())) << text;
    EXPECT_THAT(std::string(address.status().message()), HasSubstr(why)) << text;
  }
}

class ClientOptionsTest : public ::testing::Test {
 protected:
  ClientOptionsTest() {
    unsetenv("H5MIRROR_SERVER");
    std::string name = (std::filesystem::temp_directory_path() / "h5m_options_XXXXXX").native();
    root_ = mkdtemp(name.data());
    user_ = root_ / "user";
    system_ = root_ / "system";
    std::filesystem::create_directories(user_);
    std::filesystem::create_directories(system_);
  }
  ~ClientOptionsTest() override {
    unsetenv("H5MIRROR_SERVER");
    std::filesystem::remove_all(root_);
  }

  static void Write(const std::filesystem::path& path, const std::string& text,
                    mode_t mode = 0600) {
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
  }
  absl::StatusOr<ClientOptions> Resolve(const ClientSettings& settings = {}) {
    const std::filesystem::path directories[] = {user_, system_};
    return ResolveClientOptionsIn(settings, directories);
  }
  void ExpectError(absl::StatusCode code, const std::string& part,
                   const ClientSettings& settings = {}) {
    const absl::Status status = Resolve(settings).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }

  std::filesystem::path root_, user_, system_;
};

TEST_F(ClientOptionsTest, DefaultIsThisMachineInPlainText) {
  const auto options = Resolve();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->server, "127.0.0.1:7447");
  EXPECT_TRUE(options->loopback);
  EXPECT_TRUE(options->ca_pem.empty() && options->token.empty());
}

TEST_F(ClientOptionsTest, SettingBeatsEnvironmentBeatsUserBeatsSystem) {
  Write(system_ / "client.toml", "server = 'system'");
  EXPECT_EQ(Resolve()->server, "system");
  Write(user_ / "client.toml", "server = 'user'");
  EXPECT_EQ(Resolve()->server, "user");
  setenv("H5MIRROR_SERVER", "environment", 1);
  EXPECT_EQ(Resolve()->server, "environment");
  EXPECT_EQ(Resolve({.server = "flag", .ca = {}, .token = {}})->server, "flag");
}

TEST_F(ClientOptionsTest, TheOriginOfTheAddressIsKnown) {
  EXPECT_EQ(Resolve()->origin, "the default: nothing names a server");
  Write(system_ / "client.toml", "server = 'system'");
  EXPECT_EQ(Resolve()->origin, "server in " + (system_ / "client.toml").native());
  setenv("H5MIRROR_SERVER", "environment", 1);
  EXPECT_EQ(Resolve()->origin, "H5MIRROR_SERVER");
  ClientSettings settings;
  settings.server = "flag";
  EXPECT_EQ(Resolve(settings)->origin, "--server");
}

TEST_F(ClientOptionsTest, FilesBesideTheConfigurationAreUsed) {
  Write(system_ / "client.toml", "server = 'node7'");
  Write(system_ / "ca.pem", kPem, 0644);
  Write(system_ / "token", "  s3cret\n");
  const auto options = Resolve();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->ca_pem, kPem);
  EXPECT_EQ(options->token, "s3cret");
  EXPECT_EQ(options->target, "dns:///node7:7447");
}

TEST_F(ClientOptionsTest, PathsInAFileStartFromItsDirectory) {
  Write(user_ / "client.toml", "ca = 'lab.pem'\ntoken = '@lab.token'");
  Write(user_ / "lab.pem", kPem);
  Write(user_ / "lab.token", "abc");
  EXPECT_EQ(Resolve()->token, "abc");
  EXPECT_EQ(Resolve()->ca_pem, kPem);
}

TEST_F(ClientOptionsTest, TheDriversKeysMayStandThereToo) {
  Write(user_ / "client.toml", "ack = 'none'\nwindow = 1048576\nexclude = ['*.tmp']");
  Write(system_ / "client.toml", "root = '/data'");
  const auto options = Resolve();
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->root, "/data");
  Write(user_ / "client.toml", "root = ''");
  EXPECT_EQ(Resolve()->root, "");
  Write(user_ / "client.toml", "root = 'data'");
  ExpectError(absl::StatusCode::kInvalidArgument, "absolute path");
}

TEST_F(ClientOptionsTest, EmptyStringHidesWhatTheFilesSay) {
  Write(system_ / "ca.pem", kPem);
  Write(system_ / "token", "abc");
  const auto options = Resolve({.server = {}, .ca = "", .token = ""});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->ca_pem.empty() && options->token.empty());
}

TEST_F(ClientOptionsTest, TokenIsNeverSentInPlainTextToAnotherMachine) {
  ExpectError(absl::StatusCode::kInvalidArgument, "node7 in plain text",
              {.server = "node7", .ca = {}, .token = "abc"});
  EXPECT_EQ(Resolve({.server = "localhost", .ca = {}, .token = "abc"})->token, "abc");
}

TEST_F(ClientOptionsTest, TokenFileThatOthersCanReadIsRefused) {
  Write(root_ / "token", "s3cret", 0644);
  ExpectError(absl::StatusCode::kPermissionDenied, "chmod o-rwx",
              {.server = {}, .ca = {}, .token = "@" + (root_ / "token").native()});
  Write(user_ / "client.toml", "token = 's3cret'", 0644);
  ExpectError(absl::StatusCode::kPermissionDenied, "client.toml");
}

// `h5mirrord init` leaves the administrator's token where all users of the host look for theirs.
TEST_F(ClientOptionsTest, ATokenOfAnotherUserIsNone) {
  if (geteuid() != 0) GTEST_SKIP() << "another user's file takes root to make";
  Write(system_ / "token", "s3cret");
  for (const auto& path : {root_, system_}) chmod(path.c_str(), 0755);
  constexpr int kWithoutToken = 42;
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(1);
    const auto options = Resolve();
    _exit(options.ok() && options->token.empty() ? kWithoutToken : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), kWithoutToken);
  EXPECT_EQ(Resolve()->token, "s3cret") << "of the user that it belongs to";
}

TEST_F(ClientOptionsTest, MistakesInFilesNameFileAndKey) {
  Write(user_ / "client.toml", "sever = 'x'");
  ExpectError(absl::StatusCode::kInvalidArgument, "client.toml:1: unknown key `sever`");
  Write(user_ / "client.toml", "root = '/'\n\nserver = 7");
  ExpectError(absl::StatusCode::kInvalidArgument, "client.toml:3: `server` is not a string");
  Write(user_ / "client.toml", "\nserver = ");
  ExpectError(absl::StatusCode::kInvalidArgument, "client.toml:2: ");
  Write(user_ / "client.toml", "server = 'a b'");
  ExpectError(absl::StatusCode::kInvalidArgument, "server 'a b'");
}

TEST_F(ClientOptionsTest, OfAListOfServersTheFirstIsAsked) {
  Write(user_ / "client.toml", "server = 'one:1, two:2'");
  EXPECT_EQ(Resolve({})->server, "one:1");
  Write(user_ / "client.toml", "server = ['one:1', 'two:2']");
  EXPECT_EQ(Resolve({})->server, "one:1");
  Write(user_ / "client.toml", "server = ['one:1', 7]");
  ExpectError(absl::StatusCode::kInvalidArgument, "`server` is not a string");
  Write(user_ / "client.toml", "server = 'one:1,'");
  ExpectError(absl::StatusCode::kInvalidArgument, "missing");
  ExpectError(absl::StatusCode::kInvalidArgument, "name that one",
              {.server = "one:1,two:2", .ca = {}, .token = {}});
}

TEST_F(ClientOptionsTest, NamedFilesMustBeThereAndHoldWhatTheyShould) {
  ExpectError(absl::StatusCode::kNotFound, "none.pem",
              {.server = {}, .ca = (root_ / "none.pem").native(), .token = {}});
  Write(root_ / "odd.pem", "hello");
  ExpectError(absl::StatusCode::kInvalidArgument, "odd.pem: holds no PEM certificate",
              {.server = {}, .ca = (root_ / "odd.pem").native(), .token = {}});
  ExpectError(absl::StatusCode::kInvalidArgument,
              "visible ASCII characters; it is one line of plain text, as `h5mirrord token add`",
              {.server = {}, .ca = {}, .token = "a b"});
}

TEST_F(ClientOptionsTest, ServersOfOneClusterAreKeptTogether) {
  const auto options = Resolve({.server = "127.0.0.1:1 | [::1]:2|localhost:3"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->target, "dns:///127.0.0.1:1");
  ASSERT_EQ(options->others.size(), 2u);
  EXPECT_EQ(options->others[1].target, "dns:///localhost:3");
  EXPECT_TRUE(options->loopback);
  EXPECT_FALSE(Resolve({.server = "127.0.0.1:1|node7"})->loopback);
  Write(user_ / "client.toml", "server = ['one:1|two:2', 'three']");
  EXPECT_EQ(Resolve()->server, "one:1|two:2");
  ExpectError(absl::StatusCode::kInvalidArgument, "missing beside a '|'", {.server = "one|"});
  ExpectError(absl::StatusCode::kInvalidArgument, "one:x", {.server = "two|one:x"});
}

TEST_F(ClientOptionsTest, ATokenGoesToAllServersOfAClusterOrToNone) {
  ExpectError(absl::StatusCode::kInvalidArgument, "in plain text",
              {.server = "127.0.0.1:1|node7", .ca = {}, .token = "secret"});
  std::filesystem::create_directory(user_ / "tokens");
  Write(LoginToken(user_, "127.0.0.1:2"), "login\n");
  EXPECT_EQ(Resolve({.server = "127.0.0.1:1|127.0.0.1:2"})->token, "login");
}

TEST_F(ClientOptionsTest, ALoginAtTheServerGoesBeforeTheOtherToken) {
  std::filesystem::create_directory(user_ / "tokens");
  Write(user_ / "token", "other");
  Write(LoginToken(user_, "127.0.0.1:9"), "login\n");
  const auto there = Resolve({.server = "127.0.0.1:9"});
  ASSERT_TRUE(there.ok()) << there.status();
  EXPECT_EQ(there->token, "login");
  EXPECT_EQ(there->token_source, "@" + LoginToken(user_, "127.0.0.1:9").native());
  const auto elsewhere = Resolve({.server = "127.0.0.1:10"});
  ASSERT_TRUE(elsewhere.ok()) << elsewhere.status();
  EXPECT_EQ(elsewhere->token, "other");
  EXPECT_EQ(Resolve({.server = "127.0.0.1:9", .token = "mine"})->token, "mine");
  EXPECT_EQ(Resolve({.server = "127.0.0.1:9", .token = "mine"})->token_source, "");
}

TEST_F(ClientOptionsTest, TheFileOfALoginIsNamedByTheServer) {
  EXPECT_EQ(LoginToken("/c", "Node7"), "/c/tokens/node7%3A7447");
  EXPECT_EQ(LoginToken("/c", "unix:/run/a_b"), "/c/tokens/unix%3A%2Frun%2Fa%5Fb");
}

TEST_F(ClientOptionsTest, MungeIsNoSecretAndTheErrorNamesIt) {
  Write(system_ / "client.toml", "token = 'munge:" + (root_ / "no-munged").native() + "'", 0644);
  const absl::Status status = Resolve().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("token = \"munge\": munged does not answer"));
  EXPECT_EQ(Resolve({.token = ""})->token_source, "");
}

}  // namespace
}  // namespace h5mirror::rpc
