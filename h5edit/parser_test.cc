#include "h5edit/parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/strings.h"

namespace h5mirror::edit {
namespace {

using testing::HasSubstr;

bool TwoLines(const std::string& path, std::string* text, std::string* error) {
  *error = "cannot read " + path;
  *text = path == "bad.csv" ? "1, ;" : "1, 2\n3 4\n";
  return path != "none.csv";
}

std::vector<Statement> Parsed(const std::string& script) {
  std::vector<Statement> statements;
  Problem problem;
  const Source source("s", script);
  EXPECT_TRUE(Parse(source, TwoLines, &statements, &problem)) << source.Explain(problem);
  return statements;
}

Statement One(const std::string& script) {
  const std::vector<Statement> statements = Parsed(script);
  EXPECT_EQ(statements.size(), 1u) << script;
  return statements.empty() ? Statement() : statements[0];
}

// "LINE:COLUMN: message" of a script that is wrong.
std::string Wrong(const std::string& script) {
  std::vector<Statement> statements;
  Problem problem;
  if (Parse(Source("s", script), TwoLines, &statements, &problem)) return "parsed";
  return StrCat(problem.at.line, ":", problem.at.column, ": ", problem.message);
}

std::string TargetOf(const std::string& script) {
  const Statement statement = One(script);
  return StrCat(statement.target.object, "|", statement.target.attribute);
}

TEST(ParserTest, EmptyStatementsCommentsAndAByteOrderMarkAreNothing) {
  EXPECT_TRUE(Parsed("").empty());
  EXPECT_TRUE(Parsed(" ;; # DELETE /a;\n;").empty());
  EXPECT_EQ(Parsed("\xEF\xBB\xBF"
                   "DELETE /a;")
                .size(),
            1u);
}

TEST(ParserTest, AStatementMaySpanLinesAndALineMayHoldSeveral) {
  const auto statements = Parsed("DELETE\n/a\n;DELETE /b; DELETE /c;");
  ASSERT_EQ(statements.size(), 3u);
  EXPECT_EQ(statements[2].target.attribute, "c");
}

TEST(ParserTest, WordsAreSplitIntoObjectAndAttribute) {
  EXPECT_EQ(TargetOf("DELETE /attr1;"), "/|attr1");
  EXPECT_EQ(TargetOf("DELETE /g/d/a;"), "/g/d|a");
  EXPECT_EQ(TargetOf("DELETE g/d/a;"), "/g/d|a");
  EXPECT_EQ(TargetOf("DELETE /g/d//a;"), "/g/d|/a");
  EXPECT_EQ(TargetOf("DELETE //x;"), "/|/x");
  EXPECT_EQ(TargetOf("DELETE /g/d2.1'/a b';"), "/g/d2.1|/a b");
  EXPECT_EQ(TargetOf("DELETE /'two words';"), "/|two words");
  EXPECT_EQ(TargetOf("DELETE /g/d a;"), "/g/d|a");
  EXPECT_EQ(TargetOf("DELETE g 'DATA';"), "/g|DATA");
  EXPECT_EQ(TargetOf("DELETE GROUP / 2.1.x;"), "/|2.1.x");
  EXPECT_THAT(Wrong("DELETE attr1;"), HasSubstr("1:8: cannot tell object from attribute"));
  EXPECT_THAT(Wrong("DELETE /g/;"), HasSubstr("the name of the attribute is empty"));
  EXPECT_THAT(Wrong("DELETE /g DATA;"),
              HasSubstr("expected ';', found the keyword DATA; as a name it is written in quotes"));
}

TEST(ParserTest, EscapesInQuotes) {
  EXPECT_EQ(One(R"(DELETE / 'a\\\'\"\n\t\x41\u00e9';)").target.attribute, "a\\'\"\n\tA\xC3\xA9");
  EXPECT_EQ(One(R"(DELETE / "it's";)").target.attribute, "it's");
  EXPECT_THAT(Wrong(R"(DELETE / 'a\q';)"), HasSubstr("1:12: unknown escape"));
  EXPECT_THAT(Wrong(R"(DELETE / 'a\x4';)"), HasSubstr("expected 2 hexadecimal digits"));
  EXPECT_THAT(Wrong("DELETE / 'a;"), HasSubstr("1:10: the quote that begins here has no end"));
  EXPECT_THAT(Wrong(R"(DELETE / 'a\0';)"), HasSubstr("a NUL byte in a name"));
}

TEST(ParserTest, NoiseWordsMeanNothing) {
  for (const char* script :
       {"CREATE /d a {H5T_STD_I32BE (1,2,3) {1,2,3,4,5,6}};",
        "CREATE /d a {DATATYPE H5T_STD_I32BE DATASPACE SIMPLE (1,2,3) DATA {1,2,3,4,5,6}};",
        "CREATE /d a {H5T_STD_I32BE SIMPLE { ( 1, 2, 3 ) / ( 1, 2, 3 ) } {1,2,3,4,5,6}};"}) {
    const Statement statement = One(script);
    EXPECT_EQ(statement.verb, Verb::kCreateAttribute);
    EXPECT_EQ(statement.definition.type.name, "H5T_STD_I32BE");
    EXPECT_THAT(statement.definition.space.dims, testing::ElementsAre(1, 2, 3));
    EXPECT_EQ(statement.definition.values->values.size(), 6u);
  }
}

TEST(ParserTest, TypeAndSpaceMayBeLeftOut) {
  const Definition neither = One("CREATE /d/t {{-40.0}};").definition;
  EXPECT_EQ(neither.type.name, "H5T_NATIVE_FLOAT");
  EXPECT_EQ(neither.space.kind, SpaceSpec::Kind::kScalar);
  EXPECT_EQ(neither.values->values[0].number.real, -40.0);
  EXPECT_EQ(One("CREATE /t {(3) {1.0, 2.0, 3.0}};").definition.space.dims.size(), 1u);
  EXPECT_EQ(One("CREATE /t {H5T_STD_I32LE {5}};").definition.space.kind, SpaceSpec::Kind::kScalar);
  EXPECT_THAT(Wrong("CREATE /t {H5T_STD_I32LE};"),
              HasSubstr("1:25: expected the values, in { }, found '}'"));
  EXPECT_THAT(Wrong("CREATE /t {SCALAR H5T_STD_I32LE {5}};"),
              HasSubstr("in this order, found the keyword H5T_STD_I32LE"));
}

TEST(ParserTest, NullHasNoValues) {
  EXPECT_EQ(One("CREATE /a {H5T_STD_I32LE NULL {}};").definition.space.kind,
            SpaceSpec::Kind::kNull);
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE NULL {1}};"),
              HasSubstr("too many values: expected 0, found 1"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE SCALAR {}};"),
              HasSubstr("too few values: expected 1, found 0"));
}

TEST(ParserTest, IntegersFillTheirTypeAndNoMore) {
  EXPECT_EQ(Wrong("CREATE /a {H5T_STD_I8LE {-128}};"), "parsed");
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I8LE {128}};"),
              HasSubstr("1:26: out of range: the type holds -128 to 127"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_U8LE {-1}};"),
              HasSubstr("out of range: the type holds 0 to 255"));
  EXPECT_EQ(Wrong("CREATE /a {H5T_STD_I64LE {-9223372036854775808}};"), "parsed");
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I64LE {9223372036854775808}};"), HasSubstr("out of range"));
  EXPECT_EQ(Wrong("CREATE /a {H5T_STD_U64LE {18446744073709551615}};"), "parsed");
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_U64LE {18446744073709551616}};"),
              HasSubstr("out of range"));
  EXPECT_EQ(One("CREATE /a {H5T_STD_U8LE {0xfF}};").definition.values->values[0].number.magnitude,
            255u);
}

TEST(ParserTest, RealsOverflowOnlyWhenInfinityIsWritten) {
  EXPECT_THAT(Wrong("CREATE /a {H5T_IEEE_F32LE {1e39}};"), HasSubstr("infinity is written inf"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_IEEE_F64LE {1e999}};"), HasSubstr("out of range"));
  EXPECT_EQ(Wrong("CREATE /a {H5T_IEEE_F32LE (4) {-inf, nan, 3.4028235e38, 3}};"), "parsed");
  EXPECT_EQ(Wrong("CREATE /a {H5T_IEEE_F64LE (3) {1.7976931348623157e308, 0.1E1, .5}};"), "parsed");
}

TEST(ParserTest, ValuesHaveTheClassOfTheType) {
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE SCALAR {1.5}};"),
              HasSubstr("an integer type takes integers, found a real number"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE SCALAR {'x'}};"), HasSubstr("found a string"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STRING {STRSIZE 3} SCALAR {x}};"),
              HasSubstr("takes quoted strings, found a word"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE (3) {1,2}};"),
              HasSubstr("1:34: too few values: expected 3, found 2"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE (3) {1,2,3,4}};"),
              HasSubstr("1:37: too many values: expected 3, found 4"));
}

TEST(ParserTest, StringsFitTheirSize) {
  EXPECT_THAT(Wrong("CREATE /a {H5T_STRING { STRSIZE 4 } SCALAR {'four'}};"),
              HasSubstr("string too long: 4 bytes, and the type holds 3 and a NUL"));
  EXPECT_EQ(Wrong("CREATE /a {H5T_STRING { STRSIZE 4; STRPAD H5T_STR_NULLPAD; } SCALAR {'four'}};"),
            "parsed");
  EXPECT_EQ(Wrong("CREATE /a {H5T_STRING { STRSIZE 1 } SCALAR {''}};"), "parsed");
  EXPECT_THAT(Wrong("CREATE /a {H5T_STRING { STRSIZE 0 } SCALAR {''}};"),
              HasSubstr("STRSIZE must be at least 1"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STRING { STRSIZE 9 } SCALAR {'\xC3\xA9'}};"),
              HasSubstr("not ASCII"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STRING { CSET H5T_CSET_UTF8 } SCALAR {'e'}};"),
              HasSubstr("expected STRSIZE, which a string must have"));
  EXPECT_TRUE(One("CREATE /a {H5T_STRING { CTYPE H5T_C_S1; STRSIZE H5T_VARIABLE; } {'e'}};")
                  .definition.type.is_variable);
}

TEST(ParserTest, DimensionsArePositiveAndAtMost32) {
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE (0) {1}};"),
              HasSubstr("a dimension must be at least 1"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE (-1) {1}};"),
              HasSubstr("a dimension must be at least 1"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE () {1}};"),
              HasSubstr("expected the size of a dimension, found ')'"));
  std::string dims = "1";
  for (int i = 1; i < 33; ++i) dims += ",1";
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE (" + dims + ") {1}};"),
              HasSubstr("at most 32 dimensions, found 33"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE SIMPLE {(2) / (H5S_UNLIMITED)} {1,2}};"),
              HasSubstr("an attribute cannot be extended"));
}

TEST(ParserTest, UnknownTypesAreNamedWithTheirNearest) {
  EXPECT_THAT(Wrong("CREATE /a {H5T_BOGUS SCALAR {1}};"),
              HasSubstr("1:12: unknown type H5T_BOGUS"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32 SCALAR {1}};"),
              HasSubstr("did you mean H5T_STD_I32BE?"));
}

TEST(ParserTest, EnumsHaveMembersOfTheirBase) {
  const char* const script =
      "CREATE /a {H5T_ENUM { H5T_STD_I8LE; \"RED\" 0; BLUE -1; } (3) {RED, 'BLUE', -1}};";
  EXPECT_EQ(One(script).definition.type.members.size(), 2u);
  EXPECT_THAT(Wrong("CREATE /a {H5T_ENUM { H5T_STD_I8LE; 'RED' 300; } {RED}};"),
              HasSubstr("out of range"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_ENUM { H5T_STD_I8LE; 'RED' 0; } {GREEN}};"),
              HasSubstr("no member of the enum; it has RED"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_ENUM { H5T_ENUM { H5T_STD_I8LE"),
              HasSubstr("expected an integer type"));
}

TEST(ParserTest, RenameTakesABareOrQuotedName) {
  EXPECT_EQ(One("RENAME /d a b;").new_name, "b");
  EXPECT_EQ(One("RENAME GROUP /attr2 b;").target.attribute, "attr2");
  EXPECT_EQ(One("RENAME /a '/b';").new_name, "/b");
  EXPECT_THAT(Wrong("RENAME GROUP /g1 attr2 /g2;"), HasSubstr("a new name has no slash"));
  EXPECT_THAT(Wrong("RENAME /a a;"), HasSubstr("the new name is the old one"));
  EXPECT_THAT(Wrong("RENAME /a;"), HasSubstr("expected the new name, found ';'"));
}

TEST(ParserTest, CopyTakesTwoOrFourWords) {
  for (const char* script : {"COPY / a / b;", "COPY /a /b;", "COPY /a b;",
                             "COPY GROUP / a GROUP / b;", "COPY GROUP /a GROUP /b;"}) {
    const Statement statement = One(script);
    EXPECT_EQ(statement.target.object + statement.target.attribute, "/a") << script;
    EXPECT_EQ(statement.destination.object + statement.destination.attribute, "/b") << script;
  }
  EXPECT_EQ(One("COPY /attr1 /g2/d//copy;").destination.attribute, "/copy");
  EXPECT_THAT(Wrong("COPY /attr1 / attr2;"),
              HasSubstr("1:20: expected the name of the new attribute"));
  EXPECT_THAT(Wrong("COPY GROUP / ATTRIBUTE attr1 GROUP / ATTRIBUTE attr2;"),
              HasSubstr("found the keyword ATTRIBUTE"));
  EXPECT_THAT(Wrong("COPY a /b;"), HasSubstr("cannot tell object from attribute"));
  EXPECT_THAT(Wrong("COPY /a;"), HasSubstr("expected where to copy to"));
}

TEST(ParserTest, ExtensionsOfTheOriginalLanguage) {
  EXPECT_EQ(One("SHOW /d a;").verb, Verb::kShow);
  EXPECT_EQ(One("LIST /g;").target.object, "/g");
  EXPECT_TRUE(One("DELETE IF EXISTS /a;").if_exists);
  EXPECT_TRUE(One("CREATE OR REPLACE /a {{1}};").or_replace);
  EXPECT_EQ(One("CREATE GROUP /g/new;").verb, Verb::kCreateGroup);
  EXPECT_EQ(One("CREATE GROUP /g/a {{1}};").verb, Verb::kCreateAttribute);
  EXPECT_EQ(One("DELETE OBJECT /g;").verb, Verb::kDeleteObject);
  EXPECT_EQ(One("DELETE IF EXISTS OBJECT /g;").if_exists, true);
  EXPECT_EQ(One("MOVE /a /b;").destination.object, "/b");
  EXPECT_EQ(One("LINK HARD /a /b;").verb, Verb::kLinkHard);
  EXPECT_EQ(One("LINK SOFT ../a /b;").link_value, "../a");
  EXPECT_EQ(One("LINK EXTERNAL 'other.h5' /x /b;").link_file, "other.h5");
  EXPECT_THAT(Wrong("LINK /a /b;"), HasSubstr("expected HARD, SOFT or EXTERNAL"));
}

TEST(ParserTest, DatasetsAreMadeWithALayout) {
  const Statement statement =
      One("CREATE DATASET /d {H5T_STD_I32LE SIMPLE {(4, 4) / (H5S_UNLIMITED, 4)} LAYOUT CHUNKED "
          "(2, 2) FILTER SHUFFLE "
          "FILTER DEFLATE 6 FILLVALUE -1};");
  EXPECT_EQ(statement.verb, Verb::kCreateDataset);
  EXPECT_EQ(statement.target.object, "/d");
  EXPECT_EQ(statement.definition.layout->filters.size(), 2u);
  EXPECT_EQ(statement.definition.space.max_dims[0], kUnlimited);
  EXPECT_EQ(
      One("CREATE DATASET d {H5T_STD_I32LE (2) LAYOUT CONTIGUOUS DATA {1, 2}};").target.object,
      "/d");
  EXPECT_EQ(One("CREATE DATASET /d/a {{1}};").verb, Verb::kCreateAttribute);
  EXPECT_THAT(Wrong("CREATE DATASET d {{1}};"), HasSubstr("cannot tell object from attribute"));
  EXPECT_THAT(Wrong("CREATE /d {H5T_STD_I32LE (2) LAYOUT COMPACT};"),
              HasSubstr("LAYOUT is for CREATE DATASET PATH"));
  EXPECT_THAT(Wrong("CREATE DATASET /d {(2) LAYOUT COMPACT FILTER SHUFFLE};"),
              HasSubstr("filters need LAYOUT CHUNKED"));
  EXPECT_THAT(Wrong("CREATE DATASET /d {(2) LAYOUT CHUNKED (1,1)};"),
              HasSubstr("as many dimensions"));
}

TEST(ParserTest, RangesOfDatasetsAndAttributes) {
  const Statement data = One("MODIFY DATASET /g/d [0:2, 5] {1, 2};");
  EXPECT_EQ(data.verb, Verb::kModifyDataset);
  EXPECT_EQ(data.target.object, "/g/d");
  EXPECT_EQ(data.ranges[0].count, 2u);
  EXPECT_EQ(data.ranges[1].start, 5u);
  EXPECT_EQ(One("MODIFY DATASET /d [] {1};").verb, Verb::kModifyDataset);
  EXPECT_EQ(One("MODIFY /g/d/a[1,2] {7};").verb, Verb::kModifyAttribute);
  EXPECT_EQ(One("MODIFY DATASET /g/d a [1] {7};").target.attribute, "a");
  EXPECT_THAT(Wrong("MODIFY DATASET /d [0:0] {1};"), HasSubstr("the count must be at least 1"));
  EXPECT_THAT(Wrong("MODIFY DATASET /d [a] {1};"), HasSubstr("expected an index, or start:count"));
}

TEST(ParserTest, ValuesComeFromAFile) {
  const Statement statement = One("CREATE /a {H5T_STD_I32LE (4) DATA FROM 'x.csv'};");
  EXPECT_EQ(statement.definition.values->values[3].number.magnitude, 4u);
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE (5) FROM 'x.csv'};"),
              HasSubstr("too few values in x.csv: expected 5, found 4"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE FROM 'none.csv'};"),
              HasSubstr("cannot read none.csv"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE FROM 'bad.csv'};"),
              HasSubstr("bad.csv:1:4: expected a value"));
}

TEST(ParserTest, AppendTakesAnAttributeOrADatasetInBrackets) {
  const Statement attribute = One("APPEND GROUP /g a {1, 2};");
  EXPECT_EQ(attribute.verb, Verb::kAppendAttribute);
  EXPECT_EQ(attribute.target.attribute, "a");
  EXPECT_EQ(attribute.values.values.size(), 2u);
  const Statement dataset = One("APPEND DATASET d [] {1};");
  EXPECT_EQ(dataset.verb, Verb::kAppendDataset);
  EXPECT_EQ(dataset.target.object, "/d");
  EXPECT_THAT(Wrong("APPEND DATASET d [3] {1};"), HasSubstr("expected ']', found the number 3"));
  EXPECT_EQ(One("DELETE /'APPEND';").target.attribute, "APPEND");
}

TEST(ParserTest, WildcardsAreForDelete) {
  const Target quoted = One("DELETE GROUP /**/'tmp_*';").target;
  EXPECT_EQ(quoted.pattern, Target::Pattern::kQuoted);
  EXPECT_EQ(quoted.object, "/**");
  EXPECT_EQ(quoted.attribute, "tmp_*");
  const Target whole = One("DELETE IF EXISTS OBJECT a?//b;").target;
  EXPECT_EQ(whole.pattern, Target::Pattern::kWhole);
  EXPECT_EQ(whole.object, "/a?");
  EXPECT_EQ(whole.attribute, "b");
  EXPECT_EQ(One("DELETE OBJECT *;").target.object, "/");
  EXPECT_EQ(One("DELETE /a*//b;").target.attribute, "/b");
  EXPECT_EQ(One("DELETE /a/'b*';").target.pattern, Target::Pattern::kNone);
  EXPECT_THAT(Wrong("DELETE a*;"), HasSubstr("cannot tell object from attribute"));
  EXPECT_THAT(Wrong("DELETE /a* b;"), HasSubstr("expected ';', found b"));
  EXPECT_THAT(Wrong("SHOW /a*;"),
              HasSubstr("found the pattern /a*; as a name it is written in quotes"));
}

TEST(ParserTest, ProblemsTellWhatWasExpectedAndWhatWasFound) {
  EXPECT_THAT(Wrong("DELETE /attr1"), HasSubstr("1:14: expected ';', found the end of the script"));
  EXPECT_THAT(Wrong("DELETE /attr1;\n  DELEET /attr2;"),
              HasSubstr("2:3: expected a command (CREATE, DELETE"));
  EXPECT_THAT(Wrong("create /a {{1}};"), HasSubstr("expected a command"));
  EXPECT_THAT(Wrong("MODIFY /a {1 2};"),
              HasSubstr("1:14: expected ',' or '}', found the number 2"));
  EXPECT_THAT(Wrong("CREATE /a {H5T_STD_I32LE (2,1) {{1},{2}}};"),
              HasSubstr("an integer type takes integers, found a value in { }"));
  EXPECT_THAT(Wrong("DELETE /a^;"), HasSubstr("1:10: unexpected character '^'"));
  EXPECT_THAT(Wrong(std::string("DELETE /a\0;", 11)), HasSubstr("a NUL byte"));
  EXPECT_THAT(Wrong("DELETE /\xFF;"), HasSubstr("not UTF-8"));
}

TEST(ParserTest, TheCaretStandsBelowTheProblem) {
  const Source source("edit.txt", "DELETE /a;\n\tMODIFY /\xC3\xA9 {1} x;\n");
  std::vector<Statement> statements;
  Problem problem;
  ASSERT_FALSE(Parse(source, TwoLines, &statements, &problem));
  EXPECT_EQ(source.Explain(problem),
            "h5edit: edit.txt:2:16: expected ';', found x\n  \tMODIFY /\xC3\xA9 {1} x;\n  \t       "
            "       ^\n");
}

TEST(ParserTest, ChunksAreSmallerThan4GiB) {
  const auto dataset = [](const std::string& type, const std::string& chunk) {
    return Wrong("CREATE DATASET /d {" + type + " (1) / (H5S_UNLIMITED) LAYOUT CHUNKED (" + chunk +
                 ")};");
  };
  EXPECT_EQ(dataset("H5T_STD_I8LE", "4294967295"), "parsed");
  EXPECT_EQ(dataset("H5T_STD_I32LE", "1073741823"), "parsed");
  EXPECT_THAT(dataset("H5T_STD_I8LE", "4294967296"), HasSubstr("1:70: a chunk is too large"));
  EXPECT_THAT(dataset("H5T_STD_I32LE", "1073741824"), HasSubstr("a chunk is too large"));
  EXPECT_THAT(dataset("'/t'", "4294967296"), HasSubstr("a chunk is too large"));
}

TEST(ParserTest, WhatCannotBeReadIsAnError) {
  std::string text = "kept", error;
  EXPECT_FALSE(ReadTextFile("/", &text, &error));
  EXPECT_EQ(error, "cannot read /: Is a directory");
  EXPECT_FALSE(ReadTextFile("/dev/null/none", &text, &error));
  EXPECT_EQ(error, "cannot read /dev/null/none: Not a directory");
  EXPECT_TRUE(ReadTextFile("/dev/null", &text, &error));
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace h5mirror::edit
