#include "h5edit/h5_types.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::edit {
namespace {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

constexpr char kLook[] = "look at the type";

uint64_t ReadWord(const char* bytes, size_t size, H5T_order_t order, bool is_signed) {
  char copy[sizeof(uint64_t)] = {};
  std::memcpy(copy, bytes, size);
  if (order == H5T_ORDER_BE) std::reverse(copy, copy + size);
  uint64_t word = 0;
  std::memcpy(&word, copy, sizeof word);
  const unsigned shift = static_cast<unsigned>(64 - size * 8);
  return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(word << shift) >> shift) : word;
}

absl::StatusOr<ElementType> EnumElement(hid_t type, ElementType element) {
  H5M_ASSIGN_OR_RETURN(const Handle base, Own(H5Tget_super(type), kLook));
  element.is_signed = H5Tget_sign(base.get()) == H5T_SGN_2;
  if (element.size_bytes > sizeof(uint64_t))
    return absl::UnimplementedError("an enum of more than 64 bits");
  const int count = H5Tget_nmembers(type);
  for (int i = 0; i < count; ++i) {
    char* const name = H5Tget_member_name(type, static_cast<unsigned>(i));
    char value[64] = {};
    const bool got =
        name != nullptr && H5Tget_member_value(type, static_cast<unsigned>(i), value) >= 0;
    if (got) {
      const uint64_t word =
          ReadWord(value, element.size_bytes, H5Tget_order(base.get()), element.is_signed);
      element.members.push_back({name, static_cast<int64_t>(word)});
    }
    H5free_memory(name);
    if (!got) return hdf5::ErrorOf(kLook);
  }
  return element;
}

absl::StatusOr<ElementType> CompoundElement(hid_t type, ElementType element) {
  const int count = H5Tget_nmembers(type);
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<unsigned>(i);
    H5M_ASSIGN_OR_RETURN(const Handle member, Own(H5Tget_member_type(type, index), kLook));
    H5M_ASSIGN_OR_RETURN(ElementType part, ElementTypeOf(member.get()));
    char* const name = H5Tget_member_name(type, index);
    if (name == nullptr) return hdf5::ErrorOf(kLook);
    part.name = name;
    H5free_memory(name);
    element.parts.push_back(std::move(part));
  }
  return element;
}

absl::StatusOr<ElementType> SequenceElement(hid_t type, ElementType element) {
  H5M_ASSIGN_OR_RETURN(const Handle base, Own(H5Tget_super(type), kLook));
  H5M_ASSIGN_OR_RETURN(ElementType part, ElementTypeOf(base.get()));
  const size_t size = H5Tget_size(base.get());
  element.count = size == 0 ? 0 : element.size_bytes / size;
  element.parts.push_back(std::move(part));
  return element;
}

absl::StatusOr<ElementType> NumberElement(hid_t type, ElementType element) {
  if (element.size_bytes > sizeof(uint64_t))
    return absl::UnimplementedError("an integer or bitfield of more than 64 bits");
  element.bits = static_cast<unsigned>(H5Tget_precision(type));
  element.is_signed = element.type_class == TypeClass::kInteger && H5Tget_sign(type) == H5T_SGN_2;
  return element;
}

absl::StatusOr<ElementType> FloatElement(hid_t type, ElementType element) {
  size_t sign = 0, exponent_at = 0, exponent = 0, mantissa_at = 0, mantissa = 0;
  H5M_RETURN_IF_ERROR(
      Check(H5Tget_fields(type, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa), kLook));
  SetLimits(static_cast<unsigned>(exponent), static_cast<unsigned>(mantissa), H5Tget_ebias(type),
            &element);
  return element;
}

ElementType StringElement(hid_t type, ElementType element) {
  element.is_variable = H5Tis_variable_str(type) > 0;
  const H5T_str_t pad = H5Tget_strpad(type);
  element.pad = pad == H5T_STR_SPACEPAD  ? StringPad::kSpacePad
                : pad == H5T_STR_NULLPAD ? StringPad::kNullPad
                                         : StringPad::kNullTerm;
  element.is_utf8 = H5Tget_cset(type) == H5T_CSET_UTF8;
  return element;
}

absl::StatusOr<ElementType> ReferenceElement(hid_t type, ElementType element) {
  element.is_region = H5Tequal(type, H5T_STD_REF_DSETREG) > 0;
  if (element.is_region || H5Tequal(type, H5T_STD_REF_OBJ) > 0) return element;
  return absl::UnimplementedError(
      "references of the type H5T_STD_REF cannot be written in a script");
}

}  // namespace

size_t EncodedBytes(hid_t type) {
  constexpr size_t kBesideMessage = 2;  // What H5Tencode() writes before it.
  size_t bytes = 0;
  if (H5Tencode(type, nullptr, &bytes) < 0) return 0;
  return bytes - std::min(bytes, kBesideMessage);
}

const char* ClassName(H5T_class_t type_class) {
  constexpr const char* kNames[] = {"H5T_INTEGER",  "H5T_FLOAT",  "H5T_TIME",     "H5T_STRING",
                                    "H5T_BITFIELD", "H5T_OPAQUE", "H5T_COMPOUND", "H5T_REFERENCE",
                                    "H5T_ENUM",     "H5T_VLEN",   "H5T_ARRAY"};
  const auto index = static_cast<size_t>(type_class);
  return type_class >= 0 && index < std::size(kNames) ? kNames[index] : "of an unknown class";
}

void AppendWord(uint64_t word, size_t size, H5T_order_t order, std::string* out) {
  char bytes[sizeof word];
  std::memcpy(bytes, &word, sizeof word);
  if (order == H5T_ORDER_BE) std::reverse(bytes, bytes + size);
  out->append(bytes, size);
}

absl::StatusOr<Handle> MakeSpace(const SpaceSpec& spec) {
  if (spec.kind != SpaceSpec::Kind::kSimple) {
    return Own(H5Screate(spec.kind == SpaceSpec::Kind::kNull ? H5S_NULL : H5S_SCALAR),
               "make the space");
  }
  const std::vector<hsize_t> dims(spec.dims.begin(), spec.dims.end());
  std::vector<hsize_t> max_dims;
  for (uint64_t size : spec.max_dims) max_dims.push_back(size == kUnlimited ? H5S_UNLIMITED : size);
  return Own(H5Screate_simple(static_cast<int>(dims.size()), dims.data(),
                              max_dims.empty() ? nullptr : max_dims.data()),
             "make the space");
}

absl::StatusOr<Handle> NameList(hid_t list_class, const std::string& name) {
  constexpr char kWhat[] = "make a property list";
  H5M_ASSIGN_OR_RETURN(Handle list, Own(H5Pcreate(list_class), kWhat));
  const bool is_ascii = std::all_of(name.begin(), name.end(),
                                    [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  if (!is_ascii) H5M_RETURN_IF_ERROR(Check(H5Pset_char_encoding(list.get(), H5T_CSET_UTF8), kWhat));
  return list;
}

absl::StatusOr<ElementType> ElementTypeOf(hid_t type) {
  ElementType element;
  element.size_bytes = H5Tget_size(type);
  const H5T_class_t type_class = H5Tget_class(type);
  switch (type_class) {
    case H5T_INTEGER:
      element.type_class = TypeClass::kInteger;
      return NumberElement(type, std::move(element));
    case H5T_BITFIELD:
      element.type_class = TypeClass::kBitfield;
      return NumberElement(type, std::move(element));
    case H5T_FLOAT:
      element.type_class = TypeClass::kReal;
      return FloatElement(type, std::move(element));
    case H5T_STRING:
      element.type_class = TypeClass::kString;
      return StringElement(type, std::move(element));
    case H5T_ENUM:
      element.type_class = TypeClass::kEnum;
      return EnumElement(type, std::move(element));
    case H5T_OPAQUE:
      element.type_class = TypeClass::kOpaque;
      return element;
    case H5T_REFERENCE:
      element.type_class = TypeClass::kReference;
      return ReferenceElement(type, std::move(element));
    case H5T_COMPOUND:
      element.type_class = TypeClass::kCompound;
      return CompoundElement(type, std::move(element));
    case H5T_ARRAY:
      element.type_class = TypeClass::kArray;
      return SequenceElement(type, std::move(element));
    case H5T_VLEN:
      element.type_class = TypeClass::kList;
      return SequenceElement(type, std::move(element));
    default:
      return absl::UnimplementedError(
          StrCat("values of class ", ClassName(type_class), " cannot be written in a script"));
  }
}

}  // namespace h5mirror::edit
