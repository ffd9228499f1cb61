#include "h5edit/bytes_text.h"

#include <gtest/gtest.h>

#include <string>

namespace h5mirror::edit {
namespace {

std::string Parsed(std::string_view text) {
  std::string bytes;
  return ParseBytes(text, &bytes) ? bytes : "refused";
}

TEST(BytesTextTest, ColonsOrOneHexadecimalNumber) {
  EXPECT_EQ(Parsed("61:ff:0A"), "a\xFF\n");
  EXPECT_EQ(Parsed("0x61FF0a"), "a\xFF\n");
  EXPECT_EQ(Parsed("0x61"), "a");
}

TEST(BytesTextTest, AllElseIsRefused) {
  for (const char* text : {"", "61", "6", "61:", "61:6", ":61:62", "61:6g", "61::62", "0x", "0x6",
                           "0x61:62", "6162", "-0x61"}) {
    EXPECT_EQ(Parsed(text), "refused") << text;
  }
}

TEST(BytesTextTest, WhatIsWrittenIsReadBack) {
  EXPECT_EQ(BytesText("a"), "0x61");
  EXPECT_EQ(BytesText("a\xFF"), "61:ff");
  EXPECT_EQ(Parsed(BytesText("a\xFF")), "a\xFF");
}

}  // namespace
}  // namespace h5mirror::edit
