#include "h5edit/type_names.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/nearest_name.h"

namespace h5mirror::edit {
namespace {

constexpr auto kInt = TypeClass::kInteger;
constexpr auto kFloat = TypeClass::kReal;
constexpr auto kBits = TypeClass::kBitfield;

constexpr PredefinedType kTypes[] = {
    {"H5T_STD_I8BE", kInt, 1, true},
    {"H5T_STD_I8LE", kInt, 1, true},
    {"H5T_STD_I16BE", kInt, 2, true},
    {"H5T_STD_I16LE", kInt, 2, true},
    {"H5T_STD_I32BE", kInt, 4, true},
    {"H5T_STD_I32LE", kInt, 4, true},
    {"H5T_STD_I64BE", kInt, 8, true},
    {"H5T_STD_I64LE", kInt, 8, true},
    {"H5T_STD_U8BE", kInt, 1, false},
    {"H5T_STD_U8LE", kInt, 1, false},
    {"H5T_STD_U16BE", kInt, 2, false},
    {"H5T_STD_U16LE", kInt, 2, false},
    {"H5T_STD_U32BE", kInt, 4, false},
    {"H5T_STD_U32LE", kInt, 4, false},
    {"H5T_STD_U64BE", kInt, 8, false},
    {"H5T_STD_U64LE", kInt, 8, false},
    {"H5T_NATIVE_CHAR", kInt, sizeof(char), static_cast<char>(-1) < 0},
    {"H5T_NATIVE_SCHAR", kInt, sizeof(signed char), true},
    {"H5T_NATIVE_UCHAR", kInt, sizeof(unsigned char), false},
    {"H5T_NATIVE_SHORT", kInt, sizeof(short), true},
    {"H5T_NATIVE_USHORT", kInt, sizeof(unsigned short), false},
    {"H5T_NATIVE_INT", kInt, sizeof(int), true},
    {"H5T_NATIVE_UINT", kInt, sizeof(unsigned), false},
    {"H5T_NATIVE_LONG", kInt, sizeof(long), true},
    {"H5T_NATIVE_ULONG", kInt, sizeof(unsigned long), false},
    {"H5T_NATIVE_LLONG", kInt, sizeof(long long), true},
    {"H5T_NATIVE_ULLONG", kInt, sizeof(unsigned long long), false},
    {"H5T_STD_B8BE", kBits, 1, false},
    {"H5T_STD_B8LE", kBits, 1, false},
    {"H5T_STD_B16BE", kBits, 2, false},
    {"H5T_STD_B16LE", kBits, 2, false},
    {"H5T_STD_B32BE", kBits, 4, false},
    {"H5T_STD_B32LE", kBits, 4, false},
    {"H5T_STD_B64BE", kBits, 8, false},
    {"H5T_STD_B64LE", kBits, 8, false},
    {"H5T_NATIVE_B8", kBits, 1, false},
    {"H5T_NATIVE_B16", kBits, 2, false},
    {"H5T_NATIVE_B32", kBits, 4, false},
    {"H5T_NATIVE_B64", kBits, 8, false},
    {"H5T_FLOAT_BFLOAT16BE", kFloat, 2, true},
    {"H5T_FLOAT_BFLOAT16LE", kFloat, 2, true},
    {"H5T_IEEE_F16BE", kFloat, 2, true},
    {"H5T_IEEE_F16LE", kFloat, 2, true},
    {"H5T_IEEE_F32BE", kFloat, 4, true},
    {"H5T_IEEE_F32LE", kFloat, 4, true},
    {"H5T_IEEE_F64BE", kFloat, 8, true},
    {"H5T_IEEE_F64LE", kFloat, 8, true},
    {"H5T_NATIVE_FLOAT", kFloat, sizeof(float), true},
    {"H5T_NATIVE_DOUBLE", kFloat, sizeof(double), true},
    {"H5T_NATIVE_LDOUBLE", kFloat, sizeof(long double), true},
};

}  // namespace

const PredefinedType* FindPredefined(std::string_view name) {
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [name](const PredefinedType& type) { return type.name == name; });
  return found == std::end(kTypes) ? nullptr : found;
}

std::string_view NearestPredefined(std::string_view name) {
  std::vector<std::string_view> names;
  for (const PredefinedType& type : kTypes) names.push_back(type.name);
  return NearestName(name, names);
}

}  // namespace h5mirror::edit
