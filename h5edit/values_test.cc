#include "h5edit/values.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>

#include "h5edit/lexer.h"

namespace h5mirror::edit {
namespace {

ElementType FloatOf(const char* name) {
  TypeSpec spec;
  spec.name = name;
  return ElementTypeOf(spec);
}

// What is given to HDF5 of a number of a script.
double EncodingOf(const ElementType& type, const std::string& word) {
  ValueList list;
  list.values.emplace_back();
  list.values[0].text = word;
  EXPECT_TRUE(ParseNumber(word, &list.values[0].number));
  EXPECT_FALSE(CheckValues(type, list, 1));
  return EncodeValues(type, list).reals.at(0);
}

// What is given to HDF5; unset: it was refused.
std::optional<double> Encoding(const ElementType& type, double real) {
  ValueList list;
  list.values.emplace_back();
  list.values[0].number.is_real = true;
  list.values[0].number.real = real;
  std::array<char, 64> exact{};
  std::snprintf(exact.data(), exact.size(), "%a", real);
  list.values[0].text = exact.data();
  if (CheckValues(type, list, 1)) return std::nullopt;
  return EncodeValues(type, list).reals.at(0);
}

TEST(ValuesTest, WhatRoundsToTheLargestFloatIsIt) {
  const double largest = std::numeric_limits<float>::max();
  const double infinite = largest + std::ldexp(1.0, 103);
  const ElementType type = FloatOf("H5T_IEEE_F32BE");
  EXPECT_EQ(Encoding(type, largest), largest);
  EXPECT_EQ(Encoding(type, 3.4028235e38), largest) << "as many programs print it";
  EXPECT_EQ(Encoding(type, -std::nextafter(infinite, 0)), -largest);
  EXPECT_EQ(Encoding(type, infinite), std::nullopt);
  EXPECT_EQ(Encoding(type, -infinite), std::nullopt);
  EXPECT_EQ(Encoding(type, 1.1), 1.1F);
}

TEST(ValuesTest, AFloatIsTheNearestToWhatIsWritten) {
  // A double cannot tell these from the middle of two floats.
  const std::string above = "1.00000005960464477539062500000000001";
  const double next = std::nextafter(1.0F, 2.0F);
  EXPECT_EQ(EncodingOf(FloatOf("H5T_IEEE_F32LE"), above), next);
  EXPECT_EQ(EncodingOf(FloatOf("H5T_IEEE_F32LE"), "-" + above), -next);
  EXPECT_EQ(EncodingOf(FloatOf("H5T_IEEE_F64LE"), above), 1 + std::ldexp(1.0, -24));
  EXPECT_EQ(EncodingOf(FloatOf("H5T_IEEE_F32LE"), "4611686293305294849"), std::ldexp(next, 62));
  EXPECT_EQ(EncodingOf(FloatOf("H5T_IEEE_F32LE"), "3.4028235e38"),
            FloatOf("H5T_IEEE_F32LE").largest);
  EXPECT_EQ(static_cast<float>(EncodingOf(FloatOf("H5T_IEEE_F32LE"), "1e-45")),
            std::ldexp(1.0F, -149));
  EXPECT_EQ(EncodingOf(FloatOf("H5T_IEEE_F32LE"), "1e-60"), 0);
  EXPECT_TRUE(std::signbit(EncodingOf(FloatOf("H5T_IEEE_F32LE"), "-1e-60")));
  const double half = 1 + std::ldexp(1.0, -11), least = std::ldexp(1.0, -24);
  EXPECT_EQ(EncodingOf(FloatOf("H5T_IEEE_F16BE"), "1.00048828125"), 1) << "a tie, to even";
  EXPECT_EQ(EncodingOf(FloatOf("H5T_IEEE_F16BE"), "1.000488281250000000000001"),
            half + std::ldexp(1.0, -11));
  EXPECT_EQ(EncodingOf(FloatOf("H5T_IEEE_F16BE"), "2.98023223876953126e-8"), least);
  EXPECT_EQ(EncodingOf(FloatOf("H5T_IEEE_F16BE"), "2.98023223876953125e-8"), 0);
  EXPECT_EQ(EncodingOf(FloatOf("H5T_FLOAT_BFLOAT16BE"), "0x10100000000000001"),
            std::ldexp(129.0, 57))
      << "of more than 64 bits";
}

// Numbers that are too small to have all bits carry into those that are not.
TEST(ValuesTest, FloatsAreRoundedAsByTheProcessor) {
  const auto seed = std::random_device()();
  std::mt19937_64 random(seed);
  const ElementType type = FloatOf("H5T_IEEE_F32BE");
  for (int i = 0; i < 200000; ++i) {
    const int exponent = -155 + static_cast<int>(random() % (i % 2 == 0 ? 282 : 32));
    const double real = std::ldexp(1 + std::ldexp(random() >> 12, -52), exponent);
    ASSERT_EQ(Encoding(type, real), static_cast<float>(real)) << "seed " << seed << ": " << real;
    ASSERT_EQ(Encoding(type, -real), -static_cast<float>(real)) << "seed " << seed << ": " << real;
  }
}

TEST(ValuesTest, WhatADoubleCannotTellFromInfinityIsStillTheLargest) {
  // One less than where infinity begins, and a double is that.
  const std::string less = "340282356779733661637539395458142568447";
  const double largest = std::numeric_limits<float>::max();
  EXPECT_EQ(EncodingOf(FloatOf("H5T_IEEE_F32LE"), less), largest);
  EXPECT_EQ(EncodingOf(FloatOf("H5T_IEEE_F32BE"), "-" + less + ".5"), -largest);
}

TEST(ValuesTest, WhatRoundsToTheLargestHalfIsIt) {
  const ElementType type = FloatOf("H5T_IEEE_F16LE");
  EXPECT_EQ(Encoding(type, 65504), 65504);
  EXPECT_EQ(Encoding(type, -65519.9), -65504);
  EXPECT_EQ(Encoding(type, 65520), std::nullopt);
}

TEST(ValuesTest, WhatRoundsToTheLargestBfloat16IsIt) {
  const ElementType type = FloatOf("H5T_FLOAT_BFLOAT16LE");
  const double largest = std::ldexp(255.0, 120);
  EXPECT_EQ(Encoding(type, largest), largest);
  EXPECT_EQ(Encoding(type, std::ldexp(511.0, 119) * 0.9999), largest);
  EXPECT_EQ(Encoding(type, std::ldexp(511.0, 119)), std::nullopt);
}

TEST(ValuesTest, AnIntegerThat64BitsDoNotHoldIsItselfAsAReal) {
  Number number;
  ASSERT_TRUE(ParseNumber("-100000000000000000000", &number));
  EXPECT_EQ(number.real, -1e20);
  EXPECT_TRUE(number.is_too_large);
  ASSERT_TRUE(ParseNumber("0x100000000000000000", &number));
  EXPECT_EQ(number.real, std::ldexp(1.0, 68));
  ASSERT_TRUE(ParseNumber(std::string(400, '9'), &number));
  EXPECT_EQ(number.real, std::numeric_limits<double>::infinity());
}

TEST(ValuesTest, DoublesStayAsTheyAre) {
  const double largest = std::numeric_limits<double>::max();
  EXPECT_EQ(Encoding(FloatOf("H5T_IEEE_F64LE"), largest), largest);
  EXPECT_EQ(Encoding(FloatOf("H5T_IEEE_F64LE"), -0.1), -0.1);
}

TEST(ValuesTest, LongDoublesHaveAllTheirBits) {
  const auto wide = [](const std::string& word) -> std::optional<long double> {
    ValueList list;
    list.values.emplace_back();
    list.values[0].text = word;
    EXPECT_TRUE(ParseNumber(word, &list.values[0].number));
    const ElementType type = FloatOf("H5T_NATIVE_LDOUBLE");
    if (CheckValues(type, list, 1)) return std::nullopt;
    const std::string bytes = EncodeValues(type, list).fixed;
    EXPECT_EQ(bytes.substr(10), std::string(6, '\0')) << "what the padding held is in the file";
    long double real = 0;
    std::memcpy(&real, bytes.data(), sizeof real);
    return real;
  };
  EXPECT_EQ(wide("0.1"), 0.1L);
  EXPECT_EQ(wide("-1e4000"), -1e4000L);
  EXPECT_EQ(wide("+18446744073709551615"), 18446744073709551615.0L);
  EXPECT_EQ(wide("0x10000000000000000"), 18446744073709551616.0L);
  EXPECT_EQ(wide("inf"), std::numeric_limits<long double>::infinity());
  EXPECT_EQ(wide("1e5000"), std::nullopt);
}

}  // namespace
}  // namespace h5mirror::edit
