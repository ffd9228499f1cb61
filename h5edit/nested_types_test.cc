// Types that are made of others, and whether values fit them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "h5edit/script_testing.h"
#include "h5edit/values.h"

namespace h5mirror::edit {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::OneOf;
using testing::WrongIn;

TypeSpec TypeOf(const std::string& type, const std::string& values) {
  return OneOf("CREATE /a {" + type + " {" + values + "}};").definition.type;
}

std::string Wrong(const std::string& type, const std::string& values) {
  return WrongIn("CREATE /a {" + type + " {" + values + "}};");
}

std::string Nested(const std::string& open, int depth, const std::string& inner,
                   const std::string& close) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += inner;
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

constexpr char kPair[] = "H5T_COMPOUND { H5T_STD_I8LE \"a\"; H5T_IEEE_F64LE \"b\"; }";

TEST(NestedTypesTest, CompoundsHaveNamedMembers) {
  const TypeSpec pair = TypeOf(kPair, "{1, 2.5}");
  ASSERT_EQ(pair.parts.size(), 2u);
  EXPECT_EQ(pair.parts[0].name, "H5T_STD_I8LE");
  EXPECT_EQ(pair.parts[1].member, "b");
  EXPECT_EQ(ElementTypeOf(pair).size_bytes, 9u);
  EXPECT_EQ(TypeOf("H5T_COMPOUND {H5T_STD_I8LE a}", "{1}").parts[0].member, "a");
}

TEST(NestedTypesTest, CompoundsThatAreNone) {
  EXPECT_THAT(Wrong("H5T_COMPOUND {}", "{}"), HasSubstr("1:26: expected the type of a member"));
  EXPECT_THAT(Wrong("H5T_COMPOUND {H5T_STD_I8LE a; H5T_STD_I8LE 'a'}", "{}"),
              HasSubstr("1:55: the compound has a member a already"));
  EXPECT_THAT(Wrong("H5T_COMPOUND {H5T_STD_I8LE}", "{}"),
              HasSubstr("expected the name of a member"));
  EXPECT_THAT(Wrong("H5T_COMPOUND {H5T_STD_I8LE ''}", "{}"), HasSubstr("not a name for a member"));
  EXPECT_THAT(Wrong("H5T_COMPOUND {H5T_STD_I8LE a H5T_STD_I8LE b}", "{}"),
              HasSubstr("expected ';' or '}', found the keyword H5T_STD_I8LE"));
  EXPECT_THAT(Wrong("H5T_COMPOUND {H5T_STD_I9 a}", "{}"), HasSubstr("unknown type H5T_STD_I9"));
}

TEST(NestedTypesTest, ArraysHaveDimensions) {
  const TypeSpec array = TypeOf("H5T_ARRAY { [2][3] H5T_STD_I16LE }", "[1,2,3,4,5,6]");
  EXPECT_THAT(array.dims, ElementsAre(2, 3));
  EXPECT_EQ(ElementTypeOf(array).size_bytes, 12u);
  EXPECT_THAT(Wrong("H5T_ARRAY {H5T_STD_I8LE}", "[]"), HasSubstr("such as [2][3]"));
  EXPECT_THAT(Wrong("H5T_ARRAY {[0] H5T_STD_I8LE}", "[]"), HasSubstr("must be at least 1"));
  EXPECT_THAT(Wrong("H5T_ARRAY {" + Nested("[1]", 33, "", "") + " H5T_STD_I8LE}", "[1]"),
              HasSubstr("at most 32 dimensions, found 33"));
  EXPECT_THAT(Wrong("H5T_ARRAY {[65536][65536] H5T_STD_I8LE}", "[]"),
              HasSubstr("1:12: the type is too large"));
  EXPECT_THAT(Wrong("H5T_ARRAY {[2000000000] " +
                        Nested("H5T_ARRAY {[2000000000] ", 9, "H5T_STD_I8LE", "}") + "}",
                    "[]"),
              HasSubstr("the type is too large"));
}

TEST(NestedTypesTest, OtherTypesAsH5dumpWritesThem) {
  EXPECT_EQ(TypeOf("H5T_VLEN { H5T_STD_I8LE }", "()").parts[0].name, "H5T_STD_I8LE");
  EXPECT_TRUE(TypeOf("H5T_REFERENCE { H5T_STD_REF_DSETREG }", "NULL").is_region);
  EXPECT_FALSE(TypeOf("H5T_REFERENCE { H5T_STD_REF_OBJECT }", "NULL").is_region);
  EXPECT_EQ(TypeOf("\"/g/t\"", "1").type_class, TypeClass::kCommitted);
  EXPECT_EQ(TypeOf("DATATYPE /g/t", "1").name, "/g/t");
  EXPECT_EQ(TypeOf("DATATYPE 't'", "1").name, "/t");
  EXPECT_EQ(TypeOf("H5T_FLOAT_BFLOAT16LE", "1").type_class, TypeClass::kReal);
  EXPECT_THAT(Wrong("H5T_REFERENCE { H5T_STD_REF }", "NULL"),
              HasSubstr("expected H5T_STD_REF_OBJECT or"));
}

TEST(NestedTypesTest, OpaquesTakeTheirSizeFromTheFirstValue) {
  EXPECT_EQ(TypeOf("H5T_OPAQUE { OPQ_SIZE 2; OPQ_TAG \"t\"; }", "01:02").tag, "t");
  EXPECT_EQ(TypeOf("H5T_OPAQUE { OPAQUE_TAG \"\"; }", "01:02:03").size, 3u);
  const std::string within = "H5T_COMPOUND {H5T_STD_I8LE a; H5T_ARRAY {[2] H5T_OPAQUE {}} b}";
  EXPECT_EQ(TypeOf(within, "{1, [01:02, 03:04]}").parts[1].parts[0].size, 2u);
  EXPECT_THAT(Wrong("H5T_OPAQUE {}", "'x'"), HasSubstr("1:12: the size of the opaque type"));
  EXPECT_THAT(Wrong("H5T_VLEN {H5T_OPAQUE {}}", "()"), HasSubstr("1:22: the size of the opaque"));
  EXPECT_THAT(Wrong("H5T_OPAQUE {} (2)", "01:02, 01:02:03"),
              HasSubstr("the type has 2 bytes, found 3"));
  EXPECT_THAT(Wrong("H5T_OPAQUE {OPQ_SIZE 0}", "0x00"), HasSubstr("OPQ_SIZE must be at least 1"));
  EXPECT_THAT(Wrong("H5T_OPAQUE {OPQ_SIZE 2}", "258"), HasSubstr("takes bytes such as 01:ff"));
}

TEST(NestedTypesTest, ValuesOfMembersFollowTheRulesOfTheirTypes) {
  EXPECT_EQ(Wrong(std::string(kPair) + " (2)", "{1, 2.5}, {-128, inf}"), "parsed");
  EXPECT_THAT(Wrong(kPair, "{128, 2.5}"),
              HasSubstr("1:69: member a: out of range: the type holds -128 to 127"));
  EXPECT_THAT(Wrong(kPair, "{1, 'x'}"), HasSubstr("member b: wrong kind of value"));
  EXPECT_THAT(Wrong(kPair, "{1}"),
              HasSubstr("1:70: too few values for the compound: expected 2, found 1"));
  EXPECT_THAT(Wrong(kPair, "{1, 2, 3}"),
              HasSubstr("1:75: too many values for the compound: expected 2, found 3"));
  EXPECT_THAT(Wrong(kPair, "1, 2.5"), HasSubstr("in { }, found an integer"));
  EXPECT_THAT(Wrong("H5T_COMPOUND {H5T_ARRAY {[2] H5T_STD_U8LE} m}", "{[1]}"),
              HasSubstr("member m: too few values for the array: expected 2, found 1"));
  EXPECT_THAT(Wrong("H5T_COMPOUND {H5T_VLEN {H5T_STD_U8LE} m}", "{(1, -1)}"),
              HasSubstr("member m: out of range"));
  EXPECT_THAT(Wrong("H5T_ARRAY {[2] H5T_STD_I8LE}", "(1, 2)"),
              HasSubstr("takes its values in [ ], found a value in ( )"));
  EXPECT_THAT(Wrong("H5T_VLEN {H5T_ENUM {H5T_STD_I8LE; RED 0}}", "(RED, BLUE)"),
              HasSubstr("no member of the enum; it has RED"));
  EXPECT_THAT(Wrong("H5T_VLEN {H5T_STRING {STRSIZE 2}}", "('a', 'bc')"),
              HasSubstr("string too long"));
}

TEST(NestedTypesTest, BitfieldsAreNumbersOrBytes) {
  EXPECT_EQ(Wrong("H5T_STD_B16BE (4)", "0xFFFF, 258, 02:01, 0"), "parsed");
  EXPECT_THAT(Wrong("H5T_STD_B16BE", "65536"), HasSubstr("out of range"));
  EXPECT_THAT(Wrong("H5T_STD_B16BE", "-1"), HasSubstr("out of range"));
  EXPECT_THAT(Wrong("H5T_STD_B16BE", "01:02:03"), HasSubstr("the type has 2 bytes, found 3"));
  const Statement statement = OneOf("CREATE /a {H5T_STD_B16BE (2) {02:01, 258}};");
  const ElementType type = ElementTypeOf(statement.definition.type);
  for (const Value& value : statement.definition.values->values)
    EXPECT_EQ(WordOf(type, value), 0x0102u);
}

TEST(NestedTypesTest, BitfieldsTakeAsManyBytesAsTheirBitsFill) {
  ElementType type;
  type.type_class = TypeClass::kBitfield;
  type.size_bytes = 4;
  type.bits = 12;
  type.is_signed = false;
  const auto wrong = [&type](const std::string& value) {
    const auto found = CheckValues(type, OneOf("MODIFY /a {" + value + "};").values, 1);
    return found ? found->message : "";
  };
  for (const char* fits : {"0xFFF", "ff:0f", "ff:0f:00:00"}) EXPECT_EQ(wrong(fits), "") << fits;
  EXPECT_THAT(wrong("ff:1f"), HasSubstr("out of range: the type holds 0 to 4095"));
  EXPECT_THAT(wrong("0x1000"), HasSubstr("out of range"));
  EXPECT_THAT(wrong("ff:0f:00"), HasSubstr("the type has 4 bytes, found 3"));
}

TEST(NestedTypesTest, ReferencesNameObjectsOrRegions) {
  const std::string object = "H5T_REFERENCE {H5T_STD_REF_OBJECT}";
  const std::string region = "H5T_REFERENCE {H5T_STD_REF_DSETREG}";
  const std::string block = "DATASET '/d' {REGION_TYPE BLOCK (0)-(1)}";
  EXPECT_EQ(Wrong(object + " (4)", "/g/d, 'd', GROUP /, NULL"), "parsed");
  EXPECT_EQ(Wrong(region + " (2)", block + ", NULL"), "parsed");
  EXPECT_THAT(Wrong(object, "1"), HasSubstr("takes the path of an object, found an integer"));
  EXPECT_THAT(Wrong(object, block), HasSubstr("a reference to an object has no region"));
  for (const char* none : {"''", "\"\"", "DATASET ''", "GROUP \"\""})
    EXPECT_THAT(Wrong(object, none), HasSubstr("an empty path leads to no object"));
  EXPECT_THAT(Wrong(region, "DATASET '' {REGION_TYPE POINT (0)}"), HasSubstr("an empty path"));
  EXPECT_THAT(Wrong(object, "'/g\\0'"), HasSubstr("a NUL byte in a path"));
  EXPECT_THAT(Wrong(region, "DATASET '/d'"), HasSubstr("a region reference takes DATASET"));
  EXPECT_THAT(Wrong("H5T_STD_I8LE", "NULL"), HasSubstr("found NULL"));
  EXPECT_EQ(Wrong("H5T_STRING {STRSIZE H5T_VARIABLE}", "NULL"), "parsed");
  EXPECT_THAT(Wrong("H5T_STRING {STRSIZE 9}", "NULL"), HasSubstr("found NULL"));
}

TEST(NestedTypesTest, DepthIsBounded) {
  const auto type = [](int depth) { return Nested("H5T_VLEN {", depth, "H5T_STD_I8LE", "}"); };
  EXPECT_EQ(Wrong(type(32), "()"), "parsed");
  EXPECT_EQ(Wrong(type(32), Nested("(", 32, "1", ")")), "parsed");
  EXPECT_THAT(Wrong(type(33), "()"), HasSubstr("types are made of types to a depth of 32"));
  EXPECT_THAT(Wrong(type(100000), "()"), HasSubstr("to a depth of 32"));
  for (const char* pair : {"()", "[]", "{}"}) {
    const std::string open(1, pair[0]), close(1, pair[1]);
    EXPECT_THAT(WrongIn("MODIFY /a {" + Nested(open, 33, "1", close) + "};"),
                HasSubstr("values are nested to a depth of 32"));
    EXPECT_THAT(WrongIn("MODIFY /a {" + Nested(open, 100000, "", "")), HasSubstr("to a depth of"));
  }
}

TEST(NestedTypesTest, WhatIsNotSaidOfACommittedTypeIsNotChecked) {
  EXPECT_EQ(Wrong("'/t' (2)", "{1, 'x'}, [2]"), "parsed");
  EXPECT_THAT(Wrong("'/t' (2)", "{1}"), HasSubstr("too few values: expected 2, found 1"));
  EXPECT_THAT(WrongIn("CREATE /a {'' {1}};"), HasSubstr("1:12: not the path"));
}

TEST(NestedTypesTest, FillValuesPointNowhere) {
  const auto dataset = [](const std::string& type, const std::string& fill) {
    return WrongIn("CREATE DATASET /d {" + type + " (4) LAYOUT COMPACT FILLVALUE " + fill + "};");
  };
  EXPECT_EQ(dataset(kPair, "{-1, nan}"), "parsed");
  EXPECT_THAT(dataset(kPair, "{-1}"), HasSubstr("too few values for the compound"));
  EXPECT_THAT(dataset("H5T_ARRAY {[1] H5T_VLEN {H5T_STD_I8LE}}", "[()]"),
              HasSubstr("a fill value of variable length, or a reference, is not supported"));
}

}  // namespace
}  // namespace h5mirror::edit
