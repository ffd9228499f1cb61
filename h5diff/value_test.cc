#include "h5diff/value.h"

#include <cmath>
#include <cstring>

#include "gtest/gtest.h"

namespace h5mirror::tools {
namespace {

using hdf5::Handle;

template <typename T>
const std::byte* At(const T& value) {
  return reinterpret_cast<const std::byte*>(&value);
}
template <typename T>
std::string Text(hid_t type, const T& value, size_t length_max = 100) {
  return ElementText(type, At(value), length_max);
}

struct Point {
  int32_t id;
  char name[6];
  double x;
};

class ValueTest : public testing::Test {
 protected:
  ValueTest() {
    EXPECT_TRUE(hdf5::StartLibrary().ok());
    name_ = Handle(H5Tcopy(H5T_C_S1));
    H5Tset_size(name_.get(), sizeof(Point::name));
    variable_ = Handle(H5Tcopy(H5T_C_S1));
    H5Tset_size(variable_.get(), H5T_VARIABLE);
    point_ = Handle(H5Tcreate(H5T_COMPOUND, sizeof(Point)));
    H5Tinsert(point_.get(), "id", HOFFSET(Point, id), H5T_NATIVE_INT32);
    H5Tinsert(point_.get(), "name", HOFFSET(Point, name), name_.get());
    H5Tinsert(point_.get(), "x", HOFFSET(Point, x), H5T_NATIVE_DOUBLE);
    sequence_ = Handle(H5Tvlen_create(H5T_NATIVE_INT8));
    const hsize_t dims[] = {2, 2};
    array_ = Handle(H5Tarray_create2(H5T_NATIVE_INT16, 2, dims));
  }
  Handle name_, variable_, point_, sequence_, array_;
};

TEST_F(ValueTest, TypesHaveTheNamesThatNumPyGivesThem) {
  EXPECT_EQ(TypeText(H5T_STD_I32LE), "int32");
  EXPECT_EQ(TypeText(H5T_STD_U16BE), "uint16 (big-endian)");
  EXPECT_EQ(TypeText(H5T_IEEE_F64LE), "float64");
  EXPECT_EQ(TypeText(variable_.get()), "string");
  EXPECT_EQ(TypeText(point_.get()), "compound{id: int32, name: string[6], x: float64}");
  EXPECT_EQ(TypeText(sequence_.get()), "vlen[int8]");
  EXPECT_EQ(TypeText(array_.get()), "array(2, 2)[int16]");
  EXPECT_EQ(ShapeText(std::vector<hsize_t>{}), "()");
  EXPECT_EQ(ShapeText(std::vector<hsize_t>{7}), "(7,)");
  EXPECT_EQ(ShapeText(Handle(H5Screate(H5S_NULL)).get()), "null");
}

TEST_F(ValueTest, NumbersAreAsShortAsTheyCanBeReadBack) {
  EXPECT_EQ(Text(H5T_NATIVE_INT8, int8_t{-5}), "-5");
  EXPECT_EQ(Text(H5T_NATIVE_UINT64, UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(Text(H5T_NATIVE_DOUBLE, 0.1), "0.1");
  EXPECT_EQ(Text(H5T_NATIVE_FLOAT, 0.1f), "0.1");
  EXPECT_EQ(Text(H5T_NATIVE_DOUBLE, 3.0), "3.0");
  EXPECT_EQ(Text(H5T_NATIVE_DOUBLE, 1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(Text(H5T_NATIVE_DOUBLE, HUGE_VAL), "inf");
  EXPECT_EQ(Text(H5T_NATIVE_DOUBLE, std::nan("")), "nan");
}

TEST_F(ValueTest, LongOnesAreCutAndWhatIsNoTextIsShownSo) {
  EXPECT_EQ(Text(variable_.get(), static_cast<const char*>("0123456789"), 4), "\"0123...\"");
  EXPECT_EQ(Text(variable_.get(), static_cast<const char*>(nullptr)), "\"\"");
  const Point point{1, {'a', 'b', 0, 'x', 'x', 'x'}, 2.5};
  EXPECT_EQ(Text(point_.get(), point), "{id: 1, name: \"ab\", x: 2.5}");
  const Point full{1, {'a', 'b', 'c', 'd', 'e', 'f'}, 2.5};
  EXPECT_EQ(Text(name_.get(), full.name), "\"abcdef\"") << "without an end of its own";
  const int16_t numbers[] = {1, 2, 3, 4};
  EXPECT_EQ(Text(array_.get(), numbers), "[1, 2, 3, 4]");
  int8_t bytes[100] = {};
  const hvl_t sequence{sizeof(bytes), bytes};
  const std::string text = Text(sequence_.get(), sequence, 20);
  EXPECT_LT(text.size(), 40u) << text;
  EXPECT_NE(text.find("..."), text.npos) << text;
}

TEST_F(ValueTest, LinesOfAStringAreReadable) {
  const auto text = [this](const char* value, size_t length_max = 100) {
    return Text(variable_.get(), value, length_max);
  };
  EXPECT_EQ(text("one\ntwo\r\n\tthree"), R"("one\ntwo\r\n\tthree")");
  EXPECT_EQ(text("say \"a\\b\""), R"("say \"a\\b\"")")
      << "what is escaped can be told from what is not";
  EXPECT_EQ(text("\033[2J\x01"), R"("\x1b[2J\x01")");
  EXPECT_EQ(text("caf\xc3\xa9s", 4), "\"caf...\"") << "no half of a character";
}

TEST_F(ValueTest, EqualIsWhatHasTheSameValue) {
  const double nan = std::nan(""), zero = 0, minus_zero = -0.0;
  EXPECT_TRUE(SameElement(H5T_NATIVE_DOUBLE, At(nan), At(nan)));
  EXPECT_FALSE(SameElement(H5T_NATIVE_DOUBLE, At(zero), At(minus_zero)));
  Point one{}, other{};
  std::memset(&one, 0x11, sizeof(one));
  std::memset(&other, 0x22, sizeof(other));
  one.id = other.id = 4;
  one.x = other.x = 1;
  std::memcpy(one.name, "ab\0cde", 6);
  std::memcpy(other.name, "ab\0xyz", 6);
  EXPECT_TRUE(SameElement(point_.get(), At(one), At(other))) << "padding has no value";
  other.x = 2;
  EXPECT_FALSE(SameElement(point_.get(), At(one), At(other)));
}

TEST_F(ValueTest, WithAToleranceNumbersMayBeApart) {
  const Tolerance absolute{.absolute = 0.5}, relative{.relative = 0.1};
  const auto same = [](double one, double other, const Tolerance& tolerance) {
    return SameElement(H5T_NATIVE_DOUBLE, At(one), At(other), tolerance);
  };
  EXPECT_TRUE(same(1, 1.5, absolute));
  EXPECT_FALSE(same(1, 1.51, absolute));
  EXPECT_TRUE(same(90, 100, relative)) << "of the second one";
  EXPECT_FALSE(same(100, 90, relative));
  EXPECT_TRUE(same(0, -0.0, relative)) << "no distance at all";
  EXPECT_FALSE(same(1e-300, 0, relative)) << "nothing is near to 0 but by the absolute one";
}

TEST_F(ValueTest, NoToleranceReachesANaNOrAnInfinity) {
  const Tolerance wide{.absolute = 1e300, .relative = 1};
  const auto same = [&](double one, double other) {
    return SameElement(H5T_NATIVE_DOUBLE, At(one), At(other), wide);
  };
  EXPECT_TRUE(same(std::nan(""), -std::nan("1"))) << "a NaN equals any other";
  EXPECT_FALSE(same(std::nan(""), 1));
  EXPECT_FALSE(same(1, std::nan("")));
  EXPECT_TRUE(same(HUGE_VAL, HUGE_VAL));
  EXPECT_FALSE(same(HUGE_VAL, -HUGE_VAL));
  EXPECT_FALSE(same(1, HUGE_VAL)) << "although it is within 1 * inf";
}

TEST_F(ValueTest, AToleranceHoldsOfIntegersToTheLastDigit) {
  const Tolerance one_apart{.absolute = 1};
  const auto same = [&](uint64_t one, uint64_t other) {
    return SameElement(H5T_NATIVE_UINT64, At(one), At(other), one_apart);
  };
  EXPECT_TRUE(same(UINT64_MAX, UINT64_MAX - 1));
  EXPECT_FALSE(same(UINT64_MAX, UINT64_MAX - 2)) << "a double could not tell";
  const uint8_t big[] = {0x01, 0x00}, near[] = {0x01, 0x01}, far[] = {0x02, 0x00};
  EXPECT_TRUE(SameElement(H5T_STD_U16BE, At(big), At(near), one_apart)) << "of any byte order";
  EXPECT_FALSE(SameElement(H5T_STD_U16BE, At(big), At(far), one_apart));
}

TEST_F(ValueTest, AToleranceReachesInsideAndLeavesTextsAlone) {
  const Tolerance tolerance{.absolute = 0.1};
  Point one{4, "ab", 1}, other{4, "ab", 1.05};
  EXPECT_TRUE(SameElement(point_.get(), At(one), At(other), tolerance));
  EXPECT_FALSE(SameElement(point_.get(), At(one), At(other)));
  other.name[1] = 'c';
  EXPECT_FALSE(SameElement(point_.get(), At(one), At(other), tolerance));
  const Handle answer(H5Tenum_create(H5T_NATIVE_INT8));
  const int8_t no = 0, yes = 1;
  H5Tenum_insert(answer.get(), "no", &no);
  H5Tenum_insert(answer.get(), "yes", &yes);
  EXPECT_FALSE(SameElement(answer.get(), At(no), At(yes), {.absolute = 1})) << "a name, no number";
}

TEST_F(ValueTest, SequencesAndStringsAreComparedByWhatTheyLeadTo) {
  int8_t a[] = {1, 2, 3}, b[] = {1, 2, 3}, c[] = {1, 2, 4};
  const hvl_t one{3, a}, same{3, b}, shorter{2, b}, different{3, c}, none{0, nullptr};
  EXPECT_TRUE(SameElement(sequence_.get(), At(one), At(same)));
  EXPECT_FALSE(SameElement(sequence_.get(), At(one), At(shorter)));
  EXPECT_FALSE(SameElement(sequence_.get(), At(one), At(different)));
  EXPECT_FALSE(SameElement(sequence_.get(), At(one), At(none)));
  const std::string text = "text", copy = "text";
  const char *pointer = text.c_str(), *other = copy.c_str(), *null = nullptr, *empty = "";
  EXPECT_TRUE(SameElement(variable_.get(), At(pointer), At(other)));
  EXPECT_FALSE(SameElement(variable_.get(), At(pointer), At(null)));
  EXPECT_TRUE(SameElement(variable_.get(), At(null), At(empty)));
}

TEST_F(ValueTest, WhatLeadsElsewhereIsFoundInsideOfOthersToo) {
  EXPECT_FALSE(LeadsElsewhere(H5T_NATIVE_INT));
  EXPECT_FALSE(LeadsElsewhere(name_.get()));
  EXPECT_FALSE(LeadsElsewhere(point_.get()));
  EXPECT_TRUE(LeadsElsewhere(variable_.get()));
  EXPECT_TRUE(LeadsElsewhere(sequence_.get()));
  EXPECT_TRUE(LeadsElsewhere(H5T_STD_REF_OBJ));
  const Handle inner(H5Tcreate(H5T_COMPOUND, sizeof(char*)));
  H5Tinsert(inner.get(), "text", 0, variable_.get());
  const hsize_t dims[] = {1};
  const Handle outer(H5Tarray_create2(inner.get(), 1, dims));
  EXPECT_TRUE(LeadsElsewhere(outer.get()));
}

}  // namespace
}  // namespace h5mirror::tools
