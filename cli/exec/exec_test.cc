#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/exec/exec_environment.h"
#include "cli/exec/exec_report.h"
#include "cli/process/child.h"
#include "cli/process/libhdf5.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;

EnvironmentChanges Environment(ExecEnvironmentRequest request,
                               std::map<std::string, std::string> variables = {}) {
  request.plugin_dir = "/opt/lib";
  request.audit_module = "/opt/audit.so";
  request.report_dir = "/tmp/r";
  auto changes = ExecEnvironment(request, [&](const char* name) { return variables[name]; });
  return changes.ok() ? *changes : EnvironmentChanges{{"error", changes.status().ToString()}};
}

// No program that uses HDF5 would start: its driver would be named, and not be found.
TEST(ExecEnvironmentTest, APluginThatNoProgramWouldFindIsRefused) {
  ExecEnvironmentRequest request;
  request.plugin_dir = "/opt/a:b/plugin";
  const auto changes = ExecEnvironment(request, [](const char*) { return std::string(); });
  EXPECT_TRUE(absl::IsInvalidArgument(changes.status())) << changes.status();
  EXPECT_THAT(std::string(changes.status().message()), HasSubstr("install h5mirror at a path"));
}

TEST(ExecEnvironmentTest, TheUsersListsStayBehindOurs) {
  const auto changes = Environment({}, {{"HDF5_PLUGIN_PATH", "/mine"}, {"LD_AUDIT", "/a.so"}});
  EXPECT_EQ(changes.at("HDF5_PLUGIN_PATH"), "/opt/lib:/mine");
  EXPECT_EQ(changes.at("LD_AUDIT"), "/opt/audit.so:/a.so");
  EXPECT_EQ(changes.at("HDF5_DRIVER"), "h5mirror");
  EXPECT_EQ(changes.at("H5MIRROR_REPORT"), "/tmp/r");
}

TEST(ExecEnvironmentTest, InsideAnotherExecNothingIsNamedTwice) {
  const auto changes =
      Environment({}, {{"HDF5_PLUGIN_PATH", "/opt/lib"}, {"LD_AUDIT", "/opt/audit.so"}});
  EXPECT_EQ(changes.at("HDF5_PLUGIN_PATH"), "/opt/lib");
  EXPECT_EQ(changes.at("LD_AUDIT"), "/opt/audit.so");
}

TEST(ExecEnvironmentTest, FlagsFollowTheConfigSoThatTheyWin) {
  ExecEnvironmentRequest request;
  request.config = "server=a;ack=none";
  request.client.server = "b:1";
  request.client.token = "@/t";
  request.root = "/data";
  EXPECT_EQ(Environment(request).at("HDF5_DRIVER_CONFIG"),
            "server=a;ack=none;server=b:1;token=@/t;root=/data");
}

TEST(ExecEnvironmentTest, TheConnectorIsNamedWhereItIsWanted) {
  ExecEnvironmentRequest request;
  EXPECT_EQ(Environment(request).count("HDF5_VOL_CONNECTOR"), 0u);
  request.tick = absl::Milliseconds(1500);
  EXPECT_EQ(Environment(request).at("HDF5_VOL_CONNECTOR"), "h5mirror tick=1500ms");
  request.all_drivers = true;
  EXPECT_EQ(Environment(request, {{"HDF5_VOL_CONNECTOR", "h5mirror"}}).at("HDF5_VOL_CONNECTOR"),
            "h5mirror tick=1500ms;drivers=all");
  request.tick = absl::ZeroDuration();
  EXPECT_EQ(Environment(request).at("HDF5_VOL_CONNECTOR"), "h5mirror drivers=all");
}

TEST(ExecEnvironmentTest, AnotherConnectorIsNotReplaced) {
  ExecEnvironmentRequest request;
  request.tick = absl::Milliseconds(100);
  EXPECT_THAT(Environment(request, {{"HDF5_VOL_CONNECTOR", "async under_vol=0"}}).at("error"),
              testing::Optional(HasSubstr("HDF5_VOL_CONNECTOR is \"async under_vol=0\"")));
}

TEST(ExecEnvironmentTest, ATickHasARange) {
  for (const absl::Duration bad : {absl::Milliseconds(9), absl::Hours(25)}) {
    ExecEnvironmentRequest request;
    request.tick = bad;
    EXPECT_THAT(Environment(request).at("error"), testing::Optional(HasSubstr("10ms to 24h")));
  }
}

TEST(ExecEnvironmentTest, PathsBecomeAbsolute) {
  ExecEnvironmentRequest request;
  request.root = "data";
  request.client.ca = "ca.pem";
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(Environment(request).at("HDF5_DRIVER_CONFIG"),
            "ca=" + here + "/ca.pem;root=" + here + "/data");
}

TEST(ExecEnvironmentTest, AListOfServersGoesToTheDriver) {
  ExecEnvironmentRequest request;
  request.client.server = "a:1, unix:/run/x.sock,unix:y.sock";
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(Environment(request).at("HDF5_DRIVER_CONFIG"),
            "server=a:1,unix:/run/x.sock,unix:" + here + "/y.sock");
}

TEST(ExecEnvironmentTest, TheEnvironmentsConfigIsKeptForOurDriverOnly) {
  EXPECT_EQ(Environment({}, {{"HDF5_DRIVER", "h5mirror"}, {"HDF5_DRIVER_CONFIG", "ack=none"}})
                .at("HDF5_DRIVER_CONFIG"),
            "ack=none");
  EXPECT_EQ(
      Environment({}, {{"HDF5_DRIVER_CONFIG", "mode=reader;version=1"}}).at("HDF5_DRIVER_CONFIG"),
      "mode=reader;version=1")
      << "no driver is named";
  EXPECT_EQ(Environment({}, {{"HDF5_DRIVER", "core"}, {"HDF5_DRIVER_CONFIG", "64 1"}})
                .at("HDF5_DRIVER_CONFIG"),
            "");
}

TEST(ExecEnvironmentTest, WhatAConfigCannotHoldIsRefused) {
  ExecEnvironmentRequest file;
  file.config = "@/etc/x.toml";
  file.client.server = "b:1";
  EXPECT_THAT(*Environment(file).at("error"), HasSubstr("is a file"));
  ExecEnvironmentRequest semicolon;
  semicolon.root = "/a;b";
  EXPECT_THAT(*Environment(semicolon).at("error"), HasSubstr("';' cannot stand"));
}

class ExecReportTest : public testing::Test {
 protected:
  ExecReportTest() {
    std::string path = testing::TempDir() + "/h5mirror-report-XXXXXX";
    directory_ = mkdtemp(path.data());
  }
  ~ExecReportTest() override { std::filesystem::remove_all(directory_); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name) << text;
  }
  ExecReport Read() {
    return ReadExecReport(
        directory_, [](const std::string&) { return std::string("1.12.2"); },
        [](int64_t pid) { return pid == kRunning; });
  }
  static constexpr int64_t kRunning = 8;
  std::filesystem::path directory_;
};

TEST_F(ExecReportTest, ALibraryWithoutThePluginIsNamedWithItsVersion) {
  Write("7.audit", R"({"event":"libhdf5","pid":7,"program":"python3","path":"/v/libhdf5.so"})"
                   "\n");
  const ExecReport report = Read();
  ASSERT_EQ(report.libraries.size(), 1u);
  EXPECT_EQ(report.libraries[0].mirror, LibraryUse::Mirror::kNever);
  EXPECT_EQ(report.libraries[0].version, "1.12.2");
  EXPECT_EQ(report.libraries[0].program, "python3");
  EXPECT_FALSE(report.complete());
}

TEST_F(ExecReportTest, ALibraryWithThePluginAndACleanFileIsComplete) {
  Write("7.audit", R"({"event":"libhdf5","pid":7,"program":"p","path":"/v/libhdf5.so"})"
                   "\n");
  Write("7.jsonl",
        R"({"event":"plugin_loaded","pid":7,"libhdf5":"1.14.4","libhdf5_path":"/v/libhdf5.so"})"
        "\n"
        R"({"event":"attach","pid":7,"file":"/d/a.h5","state":"connecting"})"
        "\n"
        R"({"event":"close","pid":7,"file":"/d/a.h5","state":"clean","cut":9,"version":2})"
        "\n"
        R"({"event":"close","pid":7,"file":"/d/a.h5","state":"unchanged","cut":0})"
        "\n"
        R"({"event":"clo)");
  const ExecReport report = Read();
  ASSERT_EQ(report.files.size(), 1u);
  EXPECT_EQ(report.files[0].version, 2);
  EXPECT_EQ(report.libraries[0].version, "1.14.4");
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(ExecReportToJson(report, 0)["files"][0]["state"], "clean");
}

TEST_F(ExecReportTest, AFileThatIsBehindAndAnEmptyReportAreNotComplete) {
  EXPECT_FALSE(Read().complete());
  Write("7.jsonl",
        R"({"event":"plugin_loaded","pid":7,"libhdf5":"2.0.0","libhdf5_path":"/v/libhdf5.so"})"
        "\n"
        R"({"event":"close","pid":7,"file":"/d/a.h5","state":"behind"})"
        "\n");
  EXPECT_FALSE(Read().complete());
}

TEST_F(ExecReportTest, AFileThatWasLeftOutIsListedAndNotComplete) {
  Write("7.jsonl",
        R"({"event":"plugin_loaded","pid":7,"libhdf5":"2.0.0","libhdf5_path":"/v/libhdf5.so"})"
        "\n"
        R"({"event":"left_out","pid":7,"file":"/d/a.h5","state":"left_out","detail":"mode=off"})"
        "\n");
  const ExecReport report = Read();
  ASSERT_EQ(report.files.size(), 1u);
  EXPECT_TRUE(report.files[0].left_out());
  EXPECT_EQ(report.files[0].detail, "mode=off");
  EXPECT_FALSE(report.complete());
}

TEST_F(ExecReportTest, AFileThatTheUserExcludesIsListedAndMissedByNobody) {
  Write("7.jsonl",
        R"({"event":"plugin_loaded","pid":7,"libhdf5":"2.0.0","libhdf5_path":"/v/libhdf5.so"})"
        "\n"
        R"({"event":"left_out","pid":7,"file":"/d/a.h5","state":"left_out",)"
        R"("detail":"exclude=*.h5 leaves it out"})"
        "\n");
  const ExecReport report = Read();
  ASSERT_EQ(report.files.size(), 1u);
  EXPECT_TRUE(report.files[0].left_out());
  EXPECT_FALSE(report.files[0].mirrored());
  EXPECT_TRUE(report.complete());
}

TEST_F(ExecReportTest, AProcessThatEndedWithoutACloseIsALostWriter) {
  const auto opened = [](int64_t pid, const char* state) {
    return absl::StrCat(R"({"event":"opened","pid":)", pid,
                        R"(,"file":"/d/a.h5","server":"s","state":")", state, "\"}\n");
  };
  Write("6.jsonl", opened(6, "behind"));
  Write("7.jsonl", opened(7, "mirroring"));
  Write("8.jsonl", opened(kRunning, "mirroring"));
  Write("9.jsonl", opened(9, "diverged"));
  const ExecReport report = Read();
  ASSERT_EQ(report.files.size(), 4u);
  EXPECT_TRUE(report.files[0].writer_lost());
  EXPECT_TRUE(report.files[1].writer_lost());
  EXPECT_EQ(report.files[2].state, "open");
  EXPECT_EQ(report.files[3].state, "diverged");
  EXPECT_FALSE(report.complete());
}

// Longer than the 64 MiB from which on reports were once dropped whole.
TEST_F(ExecReportTest, ALongReportIsReadToItsEnd) {
  Write("7.jsonl", "");
  std::filesystem::resize_file(directory_ / "7.jsonl", 65 << 20);  // A line of zeros, and a hole.
  std::ofstream(directory_ / "7.jsonl", std::ios::app)
      << "\n"
      << R"({"event":"close","pid":7,"libhdf5_path":"/v/libhdf5.so","file":"/d/a.h5","state":"clean"})"
      << "\n";
  const ExecReport report = Read();
  ASSERT_EQ(report.files.size(), 1u);
  EXPECT_TRUE(report.complete());
}

TEST(ChildTest, CodeAndOutputComeBack) {
  const auto result =
      RunChild({"sh", "-c", "echo $A; echo no >&2; exit 3"}, {{"A", "b"}}, absl::Seconds(20));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->code, 3);
  EXPECT_EQ(result->out, "b\n");
  EXPECT_EQ(result->err, "no\n");
}

TEST(ChildTest, NobodyWaitsForWhatAChildLeavesBehind) {
  const absl::Time begin = absl::Now();
  const auto result = RunChild({"sh", "-c", "sleep 100 & echo $!"}, {}, absl::Seconds(90));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->code, 0);
  EXPECT_LT(absl::Now() - begin, absl::Seconds(60));
  EXPECT_EQ(kill(std::stoi(result->out), SIGKILL), 0);  // It runs still.
}

TEST(ChildTest, AChildThatClosesItsOutputIsWaitedForAndKilled) {
  const auto result =
      RunChild({"sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 4"}, {}, absl::Seconds(60));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->code, 4);
  const auto hangs = RunChild({"sh", "-c", "exec >&- 2>&-; exec sleep 60"}, {}, absl::Seconds(1));
  EXPECT_EQ(hangs.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(ChildTest, AChildThatHangsIsKilled) {
  const auto result = RunChild({"sleep", "60"}, {}, absl::Milliseconds(200));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(ChildTest, InOurPlaceCodesAreAsInAShell) {
  EXPECT_EQ(*RunInOurPlace({"sh", "-c", "exit 5"}, {}), 5);
  EXPECT_EQ(*RunInOurPlace({"sh", "-c", "kill -9 $$"}, {}), 137);
  EXPECT_EQ(RunInOurPlace({"/no/such/program"}, {}).status().code(), absl::StatusCode::kNotFound);
}

// The parent of the helper; never returns.
void RunTiedHelper(int input, int output) {
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  (void)RunInOurPlace({"sh", "-c", "echo up; exec cat"}, {}, WhenWeEnd::kEnds);
  _exit(0);
}

TEST(ChildTest, AHelperThatIsTiedEndsWithAParentThatIsKilled) {
  int in[2], out[2];
  ASSERT_EQ(pipe2(in, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(out, O_CLOEXEC), 0);
  const pid_t parent = fork();
  if (parent == 0) RunTiedHelper(in[0], out[1]);
  close(out[1]);
  char bytes[8];
  ASSERT_EQ(read(out[0], bytes, sizeof(bytes)), 3) << "the helper says: up";
  EXPECT_EQ(kill(parent, SIGKILL), 0);
  EXPECT_EQ(waitpid(parent, nullptr, 0), parent);
  // Its input never ends while this program lives, and its output ends with it alone.
  EXPECT_EQ(read(out[0], bytes, sizeof(bytes)), 0);
  for (const int end : {in[0], in[1], out[0]}) close(end);
}

TEST(ChildTest, ATiedHelperHasTheCodesOfOthers) {
  const auto run = [](const std::vector<std::string>& command) {
    return RunInOurPlace(command, {{"A", "6"}}, WhenWeEnd::kEnds);
  };
  EXPECT_EQ(*run({"sh", "-c", "exit $A"}), 6);
  EXPECT_EQ(*run({"sh", "-c", "kill -9 $$"}), 137);
  EXPECT_EQ(run({"/no/such/program"}).status().code(), absl::StatusCode::kNotFound);
}

TEST(LibHdf5Test, PluginsCameWithOneFourteen) {
  for (const char* version : {"1.14.0", "1.14.4", "2.0.0", "2.2.0"}) {
    EXPECT_TRUE(TakesPlugins(version)) << version;
  }
  for (const char* version : {"1.12.2", "1.10.8", "", "x.y"}) EXPECT_FALSE(TakesPlugins(version));
}

}  // namespace
}  // namespace h5mirror::tools
