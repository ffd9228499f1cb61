// A directory, a fake server and the command line, for tests of verbs.
#ifndef H5MIRROR_CLI_TESTING_CLI_TEST_BASE_H_
#define H5MIRROR_CLI_TESTING_CLI_TEST_BASE_H_

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/cli.h"
#include "cli/output/json.h"
#include "cli/testing/fake_server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {

class CliTest : public testing::Test {
 protected:
  struct Result {
    int code;
    std::string out;
    std::string err;
    Json json() const { return Json::parse(out); }
  };

  CliTest() {
    std::string path = (std::filesystem::path(testing::TempDir()) / "h5mirror-cli-XXXXXX").string();
    directory_ = mkdtemp(path.data());
    // Nobody's configuration may reach the tests.
    setenv("HOME", directory_.c_str(), 1);
    unsetenv("H5MIRROR_SERVER");
    unsetenv("HDF5_DRIVER");
    unsetenv("HDF5_DRIVER_CONFIG");
    unsetenv("HDF5_PLUGIN_PATH");
  }
  ~CliTest() override { std::filesystem::remove_all(directory_); }

  // `h5mirror --server <fake> ARGUMENTS`.
  Result Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--server", server_.address()});
    return RunBare(arguments);
  }
  static Result RunBare(const std::vector<std::string>& arguments) {
    return RunTo(Sink::kPipe, arguments);
  }
  // The same for a terminal of 80 columns.
  Result RunOnTerminal(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--server", server_.address()});
    return RunTo(Sink::kTerminal, arguments);
  }
  static Result RunTo(Sink sink, const std::vector<std::string>& arguments) {
    std::ostringstream out;
    std::ostringstream err;
    Streams streams{.out = out, .err = err, .out_sink = sink, .err_sink = sink};
    const int code = RunCli(arguments, streams);
    return {code, out.str(), err.str()};
  }

  std::string Path(const std::string& name) const { return (directory_ / name).string(); }
  void Write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((directory_ / name).parent_path());
    std::ofstream(directory_ / name, std::ios::binary) << content;
  }
  std::string Read(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Bytes that pass for a closed HDF5 file (superblock version 0) of `size_bytes`, whose rest
  // depends on `seed`.
  static std::string Hdf5Bytes(size_t size_bytes, char seed = 'a') {
    std::string bytes(size_bytes, '\0');
    bytes.replace(0, 8, "\x89HDF\r\n\x1a\n");
    bytes[13] = bytes[14] = 8;
    for (int i = 0; i < 8; ++i) bytes[40 + i] = static_cast<char>(size_bytes >> (8 * i));
    for (size_t i = 100; i < size_bytes; i += 7) bytes[i] = static_cast<char>(seed + i % 13);
    return bytes;
  }

  // a.h5, a local file that is level with the server's.
  std::string Pushed(size_t size_bytes) {
    std::string content = Hdf5Bytes(size_bytes);
    Write("a.h5", content);
    EXPECT_EQ(Run({"push", Path("a.h5"), "--name", "a.h5"}).code, 0);
    return content;
  }
  // Overwrites bytes of a.h5 in place, as a program without the driver does.
  void Poke(uint64_t offset, const std::string& bytes) {
    const int fd = open(Path("a.h5").c_str(), O_WRONLY);
    ASSERT_EQ(pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes.size()));
    close(fd);
  }

  FakeServer server_;
  std::filesystem::path directory_;
};

}  // namespace h5mirror::tools

#endif  // H5MIRROR_CLI_TESTING_CLI_TEST_BASE_H_
