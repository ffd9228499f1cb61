#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace h5mirror {
namespace {

TEST(Utf8Test, CharactersOfEachLength) {
  EXPECT_EQ(CharacterBytes("a\xFF"), 1);
  EXPECT_EQ(CharacterBytes(std::string_view("\0", 1)), 1);
  EXPECT_EQ(CharacterBytes("\xC3\xA9z"), 2);
  EXPECT_EQ(CharacterBytes("\xE2\x82\xAC"), 3);
  EXPECT_EQ(CharacterBytes("\xF4\x8F\xBF\xBF"), 4);  // U+10FFFF
}

TEST(Utf8Test, WhatIsNone) {
  for (const char* const text : {
           "\x80",              // a continuation
           "\xC3",              // cut off
           "\xE2\x82",          // cut off
           "\xC3z",             // no continuation
           "\xC0\xAF",          // '/', overlong
           "\xE0\x9F\xBF",      // overlong
           "\xF0\x8F\xBF\xBF",  // overlong
           "\xED\xA0\x80",      // a surrogate
           "\xF4\x90\x80\x80",  // U+110000
           "\xFE",
       }) {
    EXPECT_EQ(CharacterBytes(text), 0) << testing::PrintToString(std::string(text));
  }
}

TEST(Utf8Test, CharacterStarts) {
  EXPECT_EQ(CharacterStart("a\xE2\x82\xACz", 0), 0);
  EXPECT_EQ(CharacterStart("a\xE2\x82\xACz", 3), 1);
  EXPECT_EQ(CharacterStart("a\xE2\x82\xACz", 4), 4);
  EXPECT_EQ(CharacterStart("a\xE2\x82\xACz", 5), 5);  // The end.
}

TEST(Utf8Test, WhatDrivesATerminalIsEscaped) {
  EXPECT_EQ(Printable("run\033[2J\n.h5"), "run\\x1b[2J\\x0a.h5");
  EXPECT_EQ(Printable("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(Printable("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(Printable("\xc2\x9b"), "\\xc2\\x9b");  // C1's CSI.
}

}  // namespace
}  // namespace h5mirror
