#include "h5edit/pattern.h"

#include "gmock/gmock.h"

namespace h5mirror::edit {
namespace {

TEST(PatternTest, Matches) {
  const struct {
    const char* pattern;
    const char* name;
    bool is_match;
  } cases[] = {
      {"tmp_*", "tmp_1", true},
      {"tmp_*", "tmp_", true},
      {"tmp_*", "atmp_1", false},
      {"*", "", true},
      {"*a*b", "xaxbxb", true},
      {"*a*b", "xaxbx", false},
      {"a**b", "ab", true},
      {"?", "", false},
      {"?", "ab", false},
      {"?", "\xC3\xA9", true},
      {"??", "\xC3\xA9", false},
      {"?x", "\xE9x", true},
      {"a?c", "abc", true},
      {"abc", "abc", true},
      {"abc", "abcd", false},
      {"*?", "a", true},
      {"*.tmp?", "a.tmp.tmp1", true},
  };
  for (const auto& c : cases)
    EXPECT_EQ(IsMatch(c.pattern, c.name), c.is_match) << c.pattern << " " << c.name;
}

TEST(PatternTest, ManyStarsTakeNoTime) {
  std::string pattern;
  for (int i = 0; i < 1000; ++i) pattern += "a*";
  EXPECT_FALSE(IsMatch(pattern + "b", std::string(100'000, 'a')));
}

TEST(PatternTest, Components) {
  EXPECT_THAT(ComponentsOf("/a//b*/"), testing::ElementsAre("a", "b*"));
  EXPECT_THAT(ComponentsOf("/"), testing::IsEmpty());
}

}  // namespace
}  // namespace h5mirror::edit
