#include "cli/context/object_at_version.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

const absl::TimeZone kZone = absl::FixedTimeZone(3600);

struct Case {
  const char* text;
  const char* file;
  const char* path;
};

TEST(ObjectAtVersionTest, ThePathBeginsBehindTheVersion) {
  for (const Case& each : {
           Case{"run.h5@12:/g/d", "run.h5@12", "/g/d"},
           Case{"run.h5@latest-1:/", "run.h5@latest-1", "/"},
           Case{"run.h5@tag:published:/g", "run.h5@tag:published", "/g"},
           Case{"run.h5@monday-14:00:/g", "run.h5@monday-14:00", "/g"},
           Case{"run.h5@2026-11-03T14:00:05+01:00:/g", "run.h5@2026-11-03T14:00:05+01:00", "/g"},
           Case{"a:/b@c/run.h5@3:/g", "a:/b@c/run.h5@3", "/g"},
           Case{"run.h5@3:/g@2:/x", "run.h5@3", "/g@2:/x"},
           Case{"run.h5@3://g/./d/", "run.h5@3", "/g/d"},
       }) {
    const auto object = ParseObjectAtVersion(each.text, kZone);
    ASSERT_TRUE(object.ok()) << each.text << ": " << object.status();
    EXPECT_EQ(object->file_at_version, each.file);
    EXPECT_EQ(object->path, each.path);
  }
}

TEST(ObjectAtVersionTest, WhatIsMissingIsNamed) {
  const auto message = [](const char* text) {
    const absl::Status status = ParseObjectAtVersion(text, kZone).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    return std::string(status.message());
  };
  EXPECT_THAT(message("run.h5:/g"), testing::HasSubstr("names no version"));
  EXPECT_THAT(message("run.h5@12"), testing::HasSubstr("names no object"));
  EXPECT_THAT(message("run.h5@12:g"), testing::HasSubstr("names no object"));
  EXPECT_THAT(message("@12:/g"), testing::HasSubstr("names no object"));
  EXPECT_THAT(message("run.h5@soon:/g"), testing::HasSubstr("version 'soon'"));
}

TEST(PathInFileTest, APathBeginsWithTheRoot) {
  EXPECT_EQ(*PathInFile("/a//b/."), "/a/b");
  EXPECT_TRUE(absl::IsInvalidArgument(PathInFile("a/b").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(PathInFile(std::string_view("/a\0b", 4)).status()));
}

TEST(ObjectInFileTest, ThePathBeginsAtTheFirstMark) {
  const auto found = ParseObjectInFile("node7/run.h5:/g//d/./x:/y");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->file, "node7/run.h5");
  EXPECT_EQ(found->path, "/g/d/x:/y");
  EXPECT_EQ(ParseObjectInFile("run.h5:/")->path, "/");
}

TEST(ObjectInFileTest, AFileAloneNamesNoObject) {
  for (const char* text : {"run.h5", "/data/run.h5", "a:b.h5", ":/g", ""}) {
    EXPECT_FALSE(ParseObjectInFile(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace h5mirror::tools
