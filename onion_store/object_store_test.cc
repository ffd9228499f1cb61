#include "onion_store/object_store.h"

#include <string>

#include "gtest/gtest.h"

namespace h5mirror::store {
namespace {

TEST(ObjectNameTest, PartsOfLettersDigitsAndMarksAreNames) {
  for (const char* name : {"a", "files/00ff/pages-000001-ab", "a.b_c-D/0", ".a", "a..b"}) {
    EXPECT_TRUE(CheckObjectName(name).ok()) << name;
  }
  EXPECT_TRUE(CheckObjectName(std::string(512, 'x')).ok());
}

TEST(ObjectNameTest, NamesThatCouldLeadElsewhereAreRefused) {
  for (const char* name : {"", "/a", "a/", "a//b", ".", "a/../b", "..", "a/.", "a b", "a%2f", "a?b",
                           "\xc3\xa4", "a\n", "a.new", "a.new/b"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckObjectName(name))) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(CheckObjectName(std::string(513, 'x'))));
}

}  // namespace
}  // namespace h5mirror::store
