#include "client_vfd/plugin/config/file_url.h"

#include "gtest/gtest.h"

namespace h5mirror::vfd {
namespace {

std::string Parsed(std::string_view text) {
  const auto url = ParseFileUrl(text);
  return url ? url->server + " " + url->name : "none";
}

TEST(FileUrlTest, NamesServerAndFile) {
  EXPECT_EQ(Parsed("h5mirror://node7:7447/lab1/run.h5"), "node7:7447 lab1/run.h5");
  EXPECT_EQ(Parsed("h5mirror:///run.h5"), " run.h5");
  EXPECT_EQ(Parsed("h5mirror://[::1]:7447/run.h5"), "[::1]:7447 run.h5");
  EXPECT_EQ(Parsed("h5mirror+unix:///run/h5mirror/socket?name=a/b.h5"),
            "unix:/run/h5mirror/socket a/b.h5");
}

TEST(FileUrlTest, PercentIsAByte) {
  EXPECT_EQ(Parsed("h5mirror:///a%20b%40%3f.h5"), " a b@?.h5");
  EXPECT_EQ(Parsed("h5mirror:///100%.h5"), " 100%.h5");
  EXPECT_EQ(Parsed("h5mirror:///a%4"), " a%4");
}

TEST(FileUrlTest, AnythingElseIsNone) {
  for (const char* text :
       {"", "run.h5", "/data/run.h5", "http://node7/run.h5", "h5mirror://node7",
        "h5mirror://node7/", "h5mirror://me@node7/run.h5", "h5mirror:///run.h5?x=1",
        "h5mirror:///a#b", "h5mirror+unix:///run/socket", "h5mirror+unix://run/socket?name=a",
        "h5mirror+unix:///run/socket?name=", "h5mirror+unix:///run/socket?name=a&name=b"}) {
    EXPECT_EQ(Parsed(text), "none") << text;
  }
}

}  // namespace
}  // namespace h5mirror::vfd
