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

TEST(Utf8Test, OneBrokenCharacterBreaksAText) {
  EXPECT_TRUE(IsUtf8(""));
  EXPECT_TRUE(IsUtf8("run \xC3\xA9\n\xE2\x82\xAC"));
  EXPECT_FALSE(IsUtf8("run \xE9.h5"));
  EXPECT_FALSE(IsUtf8("cut \xC3"));
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
  EXPECT_EQ(Printable("\xe7\x95\xaa \xf0\x9f\x98\x80"), "\xe7\x95\xaa \xf0\x9f\x98\x80");
}

TEST(Utf8Test, TextThatTurnsOthersRoundOrIsNotSeenIsPrinted) {
  EXPECT_EQ(Printable("5h.\u202egpj"), "5h.\\xe2\\x80\\xaegpj");
  for (const std::string_view unseen :
       {"\u00ad", "\u061c", "\u115f", "\u200b", "\u200f", "\u2028", "\u2029", "\u202a", "\u2066",
        "\u2069", "\u3164", "\ufeff", "\ufff9", "\U0001d173", "\U000e0001", "\U000e0fff"}) {
    const std::string printed = Printable(unseen);
    EXPECT_EQ(printed.size(), 4 * unseen.size()) << printed;
    EXPECT_TRUE(printed.starts_with("\\x")) << printed;
    EXPECT_EQ(Printable(printed), printed);
  }
  for (const std::string_view seen : {"\u00ac", "\u00ae", "\u2010", "\u202f", "\u2030", "\uff01"})
    EXPECT_EQ(Printable(seen), seen);
}

TEST(Utf8Test, JsonIsFitForATerminalAndTheSame) {
  EXPECT_EQ(PrintableJson("{\"a\": \"\u202e\xc2\x9b\x7f\U000e0001\xff\"}\n"),
            "{\"a\": \"\\u202e\\u009b\\u007f\\udb40\\udc01\\ufffd\"}\n");
  EXPECT_EQ(PrintableJson("{\"caf\u00e9\": \"\\n\"}"), "{\"caf\u00e9\": \"\\n\"}");
}

TEST(Utf8Test, AValueAmongOthersCannotLookLikeThem) {
  EXPECT_EQ(Quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\\\x0a\"");
  EXPECT_EQ(LogValue("alice@lab-1.org"), "alice@lab-1.org");
  EXPECT_EQ(LogValue("x verified=admin"), "\"x verified=admin\"");
  EXPECT_EQ(LogValue("a=b"), "\"a=b\"");
  EXPECT_EQ(LogValue(""), "\"\"");
}

}  // namespace
}  // namespace h5mirror
