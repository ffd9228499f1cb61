// Values as h5dump writes them.
#include "h5edit/value_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "h5edit/script_testing.h"

namespace h5mirror::edit {
namespace {

using ::testing::HasSubstr;
using testing::OneOf;
using testing::WrongIn;

std::vector<Value> Values(const std::string& values) {
  return OneOf("MODIFY /a {" + values + "};").values.values;
}

std::string Wrong(const std::string& values) { return WrongIn("MODIFY /a {" + values + "};"); }

TEST(ValueParserTest, BracketsNest) {
  const std::vector<Value> values = Values("{1, [2, 3], (4, {5})}, ()");
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].kind, Value::Kind::kCompound);
  ASSERT_EQ(values[0].items.size(), 3u);
  EXPECT_EQ(values[0].items[1].kind, Value::Kind::kArray);
  EXPECT_EQ(values[0].items[2].items[1].items[0].number.magnitude, 5u);
  EXPECT_EQ(values[1].kind, Value::Kind::kList);
  EXPECT_TRUE(values[1].items.empty());
}

TEST(ValueParserTest, BracketsThatDoNotFit) {
  EXPECT_THAT(Wrong("{1, [2}"), HasSubstr("1:18: expected ',' or ']', found '}'"));
  EXPECT_THAT(Wrong("{1, }"), HasSubstr("1:16: expected a value, found '}'"));
  EXPECT_THAT(WrongIn("MODIFY /a {(1"), HasSubstr("expected ',' or ')', found the end"));
}

TEST(ValueParserTest, TheIndexOfALineIsPassedOver) {
  const std::vector<Value> values = Values("(0,0): 1, 2,\n (1,0): (3, 4),\n (12): (5)");
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values[0].number.magnitude, 1u);
  EXPECT_EQ(values[2].items.size(), 2u);
  EXPECT_EQ(values[3].items.size(), 1u);
  EXPECT_THAT(Wrong("(0,): 1"), HasSubstr("expected a value"));
  EXPECT_THAT(Wrong("{(0): 1}"), HasSubstr("expected ',' or '}', found :"));
}

TEST(ValueParserTest, ReferencesHaveAWordAnAddressAndAPath) {
  const std::vector<Value> values = Values("DATASET '/d', GROUP 800 \"/g\", /g/'x y', NULL");
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values[0].kind, Value::Kind::kReference);
  EXPECT_EQ(values[0].word, ObjectWord::kDataset);
  EXPECT_EQ(values[1].text, "/g");
  EXPECT_EQ(values[2].kind, Value::Kind::kPath);
  EXPECT_EQ(values[2].text, "/g/x y");
  EXPECT_EQ(values[3].kind, Value::Kind::kNull);
  EXPECT_THAT(Wrong("DATASET"), HasSubstr("expected the path of an object, found '}'"));
  EXPECT_THAT(Wrong("GROUP 800"), HasSubstr("expected the path of an object, found '}'"));
}

TEST(ValueParserTest, RegionsHaveBlocksOrPoints) {
  const Value block = Values("DATASET '/d' {REGION_TYPE BLOCK (0,1)-(2,3), (4,4)-(4,4)}")[0];
  EXPECT_EQ(block.region, Value::Region::kBlocks);
  ASSERT_EQ(block.items.size(), 4u);
  EXPECT_EQ(block.items[1].items[1].number.magnitude, 3u);
  const Value points = Values("DATASET /d {REGION_TYPE POINT (0), (7)}")[0];
  EXPECT_EQ(points.region, Value::Region::kPoints);
  EXPECT_EQ(points.items.size(), 2u);
  EXPECT_THAT(Wrong("DATASET /d {REGION_TYPE LINE (0)}"), HasSubstr("expected BLOCK or POINT"));
  EXPECT_THAT(Wrong("DATASET /d {REGION_TYPE BLOCK (0)}"), HasSubstr("expected '-'"));
  EXPECT_THAT(Wrong("DATASET /d {REGION_TYPE POINT (-1)}"), HasSubstr("must be at least 0"));
  EXPECT_THAT(Wrong("DATASET /d {REGION_TYPE POINT ()}"), HasSubstr("expected a number for"));
  EXPECT_THAT(Wrong("DATASET /d {(0)}"), HasSubstr("expected REGION_TYPE"));
}

TEST(ValueParserTest, WhatH5dumpSaysOfAReferencedObjectIsPassedOver) {
  const std::vector<Value> values = Values(R"(
     DATASET "t.h5/d"
        DATA {
        (0): { 1, {2} },
        (1): {}
        }
     GROUP "t.h5/g"
     NULL
     DATASET "t.h5/d" {
        REGION_TYPE POINT  (1), (3)
        DATATYPE  H5T_COMPOUND { H5T_STD_I8LE "a"; }
        DATASPACE  SIMPLE { ( 4 ) / ( 4 ) }
     }
     NULL)");
  ASSERT_EQ(values.size(), 5u);
  EXPECT_EQ(values[0].text, "t.h5/d");
  EXPECT_EQ(values[1].word, ObjectWord::kGroup);
  EXPECT_EQ(values[3].items.size(), 2u);
  EXPECT_THAT(WrongIn("MODIFY /a {DATASET /d DATA {{}"), HasSubstr("expected '}', found the end"));
}

TEST(ValueParserTest, OctalEscapesAreBytes) {
  EXPECT_EQ(Values(R"('a\000\101\0')")[0].text, std::string("a\0A\0", 4));
  EXPECT_EQ(Values(R"('\018')")[0].text, std::string("\0"
                                                     "18",
                                                     3));
  EXPECT_EQ(Values(R"('\37777777703\37777777651 \377')")[0].text, "\xC3\xA9 \xFF");
  EXPECT_THAT(Wrong(R"('\12')"), HasSubstr("1:13: expected 3 octal digits"));
}

bool NestedFile(const std::string&, std::string* text, std::string*) {
  *text = "{1, 2.5}\n{3, 400}";
  return true;
}

TEST(ValueParserTest, NestedValuesComeFromFiles) {
  const std::string type = "H5T_COMPOUND {H5T_STD_I8LE a; H5T_STD_I8LE b}";
  EXPECT_EQ(OneOf("MODIFY /a FROM 'x';", NestedFile).values.values.size(), 2u);
  EXPECT_THAT(WrongIn("CREATE /a {" + type + " (2) FROM 'x'};", NestedFile),
              HasSubstr("value 1 in x: member b: wrong kind of value"));
}

}  // namespace
}  // namespace h5mirror::edit
