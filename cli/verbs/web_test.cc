// h5mirror web: what is said where the Python package is not there. tests/e2e/test_web.py starts
// it.
#include <stdlib.h>

#include "cli/testing/cli_test_base.h"

namespace h5mirror::tools {
namespace {

using testing::HasSubstr;

class WebTest : public CliTest {
 protected:
  ~WebTest() override { unsetenv("H5MIRROR_PYTHON"); }

  // A program that says `said` and ends with `code`, in Python's place.
  void PutPython(const std::string& said, int code) {
    Write("python", "#!/bin/sh\n" + said + "\nexit " + std::to_string(code) + "\n");
    std::filesystem::permissions(Path("python"), std::filesystem::perms::owner_all);
    setenv("H5MIRROR_PYTHON", Path("python").c_str(), 1);
  }
};

TEST_F(WebTest, APythonWithoutThePackageEndsWithTheWayOut) {
  PutPython("echo 'aiohttp, h5grove'", 0);
  const Result result = Run({"web", "--http", "http://h:1"});
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(result.err, "h5mirror: web is a program of the Python package: " + Path("python") +
                            " has no aiohttp, h5grove; build the wheel with ./dev wheel, run pip "
                            "install \"$(ls build/wheel/*.whl)[web]\" in a venv, and set "
                            "H5MIRROR_PYTHON to the venv's bin/python\n");
}

TEST_F(WebTest, APythonThatIsNotThereEndsWithTheWayOut) {
  setenv("H5MIRROR_PYTHON", Path("none").c_str(), 1);
  const Result result = Run({"web"});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("start " + Path("none") + ": No such file or directory"));
  EXPECT_THAT(result.err, HasSubstr("pip install \"$(ls build/wheel/*.whl)[web]\""));
}

TEST_F(WebTest, APythonThatFailsIsQuoted) {
  PutPython("echo 'Traceback:' >&2; echo 'Fatal: no codec' >&2", 1);
  const Result result = Run({"web"});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr(Path("python") + ": Fatal: no codec; build the wheel"));
}

TEST_F(WebTest, HelpNeedsNoPython) {
  setenv("H5MIRROR_PYTHON", Path("none").c_str(), 1);
  const Result result = RunBare({"help", "web"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("H5MIRROR_PYTHON"));
}

}  // namespace
}  // namespace h5mirror::tools
