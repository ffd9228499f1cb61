#include "ceph/root_url.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::ceph {
namespace {

using ::testing::HasSubstr;

TEST(RootUrlTest, AllPartsAreRead) {
  const auto url = ParseRootUrl("cephfs:/data/h5?conf=/etc/ceph/ceph.conf&id=h5mirror&fs=lab");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(*url, (RootUrl{"/data/h5", "/etc/ceph/ceph.conf", "h5mirror", "lab"}));
}

TEST(RootUrlTest, OnlyThePathIsNeeded) {
  EXPECT_EQ(*ParseRootUrl("cephfs:/"), (RootUrl{"/", "", "", ""}));
  EXPECT_EQ(*ParseRootUrl("cephfs:/a//b/"), (RootUrl{"/a/b", "", "", ""}));
}

TEST(RootUrlTest, ItIsWrittenAsItIsRead) {
  for (const char* text : {"cephfs:/", "cephfs:/a?id=x", "cephfs:/a?conf=/c&id=x&fs=f"}) {
    EXPECT_EQ(ParseRootUrl(text)->ToString(), text);
  }
}

TEST(RootUrlTest, OtherRootsAreDirectories) {
  EXPECT_TRUE(IsRootUrl("cephfs:/a"));
  for (const char* text : {"/cephfs:", "cephfs", "./cephfs:/a", "/mnt/cephfs", ""}) {
    EXPECT_FALSE(IsRootUrl(text)) << text;
  }
}

TEST(RootUrlTest, WrongOnesSayWhy) {
  const std::pair<const char*, const char*> wrong[] = {
      {"cephfs:", "does not begin with /"},      {"cephfs:a", "does not begin with /"},
      {"cephfs:/a/../b", "\".\" or \"..\""},     {"cephfs:/a?name=x", "\"name\" is not one of"},
      {"cephfs:/a?id=", "\"id\" has no value"},  {"cephfs:/a?id", "\"id\" has no value"},
      {"cephfs:/a?id=x&id=y", "there twice"},    {"cephfs:/a?conf=ceph.conf", "no absolute path"},
      {"cephfs:/a?", "\"\" is not one of"},      {"cephfs:/a?id=x&", "\"\" is not one of"},
      {"file:/a", "does not begin with cephfs"},
  };
  for (const auto& [text, why] : wrong) {
    const auto url = ParseRootUrl(text);
    EXPECT_TRUE(absl::IsInvalidArgument(url.status())) << text;
    EXPECT_THAT(std::string(url.status().message()), HasSubstr(why)) << text;
  }
}

}  // namespace
}  // namespace h5mirror::ceph
