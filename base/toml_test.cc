#include "base/toml.h"

#include "gtest/gtest.h"

namespace h5mirror {
namespace {

TEST(TomlTest, CharactersBeyondAsciiStandInStringsAndComments) {
  for (const char* text : {
           "\xef\xbb\xbf# \xc3\xa9\na = \"\xc3\xa9\"",
           "a = '\xc3\xa9' # \xc8\x9e",
           "a = \"\"\"\n\xc3\xa9 \\\"\"\" \xc3\xa9\n\"\"\"",
           "a = '''\n'\xc3\xa9''\n'''\nb = \"\\\"\xc3\xa9\"",
           "\"\xc3\xa9\" = 1",
       }) {
    EXPECT_FALSE(FindStrayByte(text).has_value()) << text;
    EXPECT_NO_THROW(ParseToml(text)) << text;
  }
}

TEST(TomlTest, ElsewhereTheyAreRefusedWithTheirPlace) {
  for (const char* text :
       {"\n \xc8\x9e", "\n@\xc8\x9e", "a = \"x\" # c\n,\xe3\x80\x81", "a = '\\'\n \xc3\xa9'",
        "a = \"\"\"\"\"\"\n \xc3\xa9", "a = \"x\n \xc3\xa9"}) {
    const auto at = FindStrayByte(text);
    ASSERT_TRUE(at.has_value()) << text;
    EXPECT_EQ(at->line, 2u) << text;
    EXPECT_EQ(at->column, 2u) << text;
    EXPECT_THROW(ParseToml(text), toml::parse_error) << text;
  }
}

TEST(TomlTest, AKeyThatIsNoneAfterABracketIsAnError) {
  EXPECT_THROW(ParseToml("[@"), toml::parse_error);
}

}  // namespace
}  // namespace h5mirror
