// The element types of the types that a script writes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "h5edit/type_names.h"
#include "h5edit/values.h"

namespace h5mirror::edit {
namespace {

constexpr uint64_t kBytesMax = uint64_t{1} << 40;  // Far beyond what HDF5 takes.

uint64_t Times(uint64_t a, uint64_t b) {
  return b != 0 && a > kBytesMax / b ? kBytesMax : std::min(a * b, kBytesMax);
}

void SetLimitsOf(const PredefinedType& predefined, ElementType* type) {
  if (predefined.name.starts_with("H5T_FLOAT_BFLOAT16")) return SetLimits(8, 7, 127, type);
  if (predefined.size_bytes == 2) return SetLimits(5, 10, 15, type);
  if (predefined.size_bytes == 4) return SetLimits(8, 23, 127, type);
  if (predefined.name == "H5T_NATIVE_LDOUBLE") return SetLimits(15, 63, 16383, type);
  SetLimits(11, 52, 1023, type);
}

void SetParts(const TypeSpec& spec, ElementType* type) {
  for (const TypeSpec& part : spec.parts) {
    type->parts.push_back(ElementTypeOf(part));
    type->parts.back().name = part.member;
    type->size_bytes = std::min(type->size_bytes + type->parts.back().size_bytes, kBytesMax);
  }
  if (spec.type_class == TypeClass::kArray) {
    type->count = 1;
    for (uint64_t size : spec.dims) type->count = Times(type->count, size);
    type->size_bytes = Times(type->size_bytes, type->count);
  }
  if (spec.type_class == TypeClass::kList) type->size_bytes = 16;  // hvl_t
}

}  // namespace

void SetLimits(unsigned exponent_bits, unsigned mantissa_bits, uint64_t bias, ElementType* type) {
  type->largest = std::numeric_limits<double>::max();
  type->infinite_from = std::numeric_limits<double>::infinity();
  type->is_wide = exponent_bits == 15;  // As IEEE's 128 bits have, too.
  if (exponent_bits == 0 || exponent_bits > 11 || mantissa_bits >= 52) return;
  const int64_t exponent =
      (int64_t{1} << exponent_bits) - 2 - static_cast<int64_t>(std::min<uint64_t>(bias, 1 << 20));
  if (exponent >= 1023) return;
  const int last = static_cast<int>(std::max<int64_t>(exponent, -1000));
  const int mantissa = static_cast<int>(mantissa_bits);
  type->largest = std::ldexp(2.0 - std::ldexp(1.0, -mantissa), last);
  type->infinite_from = type->largest + std::ldexp(1.0, last - mantissa - 1);
  type->mantissa_bits = mantissa;
  type->lowest_exponent = 1 - static_cast<int>(std::min<uint64_t>(bias, 1 << 20));
}

bool PointsElsewhere(const ElementType& type) {
  return type.is_variable || type.type_class == TypeClass::kList ||
         type.type_class == TypeClass::kReference ||
         std::any_of(type.parts.begin(), type.parts.end(), PointsElsewhere);
}

ElementType ElementTypeOf(const TypeSpec& spec) {
  ElementType type;
  type.type_class = spec.type_class;
  const PredefinedType* const predefined =
      spec.type_class == TypeClass::kCommitted ? nullptr : FindPredefined(spec.name);
  if (predefined != nullptr) {
    type.size_bytes = predefined->size_bytes;
    type.bits = static_cast<unsigned>(predefined->size_bytes * 8);
    type.is_signed = predefined->is_signed;
    SetLimitsOf(*predefined, &type);
  }
  if (spec.type_class == TypeClass::kString || spec.type_class == TypeClass::kOpaque) {
    type.size_bytes = spec.is_variable ? sizeof(char*) : spec.size;
    type.is_variable = spec.is_variable;
    type.pad = spec.pad;
    type.is_utf8 = spec.is_utf8;
  }
  if (spec.type_class == TypeClass::kReference) {
    type.is_region = spec.is_region;
    type.size_bytes = spec.is_region ? 12 : 8;  // hdset_reg_ref_t, hobj_ref_t
  }
  for (const EnumMember& member : spec.members) {
    const uint64_t word =
        member.value.is_negative ? 0 - member.value.magnitude : member.value.magnitude;
    type.members.push_back({member.name, static_cast<int64_t>(word)});
  }
  SetParts(spec, &type);
  return type;
}

}  // namespace h5mirror::edit
