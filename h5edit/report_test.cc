#include "h5edit/report.h"

#include <gtest/gtest.h>

namespace h5mirror::edit {
namespace {

TEST(ReportTest, JsonStringsAreUtf8WhateverTheTextIs) {
  EXPECT_EQ(JsonString("a\"\\\n\x01"), "\"a\\\"\\\\\\n\\u0001\"");
  EXPECT_EQ(JsonString("\xC3\xA9\xE2\x82\xAC"), "\"\xC3\xA9\xE2\x82\xAC\"");
  EXPECT_EQ(JsonString("caf\xE9!"), "\"caf\\ufffd!\"") << "Latin 1";
  EXPECT_EQ(JsonString("\xC3"), "\"\\ufffd\"") << "cut short";
  EXPECT_EQ(JsonString("\xED\xA0\x80"), "\"\\ufffd\\ufffd\\ufffd\"") << "a surrogate";
}

}  // namespace
}  // namespace h5mirror::edit
