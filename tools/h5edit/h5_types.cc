#include "tools/h5edit/h5_types.h"

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

constexpr char kMakeType[] = "make the type";

#define H5EDIT_TYPE(name) \
  if (text == #name) return name
#define H5EDIT_ORDERS(name) \
  H5EDIT_TYPE(name##BE);    \
  H5EDIT_TYPE(name##LE)

hid_t PredefinedId(const std::string& text) {
  H5EDIT_ORDERS(H5T_STD_I8);
  H5EDIT_ORDERS(H5T_STD_I16);
  H5EDIT_ORDERS(H5T_STD_I32);
  H5EDIT_ORDERS(H5T_STD_I64);
  H5EDIT_ORDERS(H5T_STD_U8);
  H5EDIT_ORDERS(H5T_STD_U16);
  H5EDIT_ORDERS(H5T_STD_U32);
  H5EDIT_ORDERS(H5T_STD_U64);
  H5EDIT_ORDERS(H5T_IEEE_F32);
  H5EDIT_ORDERS(H5T_IEEE_F64);
#ifdef H5T_IEEE_F16LE
  H5EDIT_ORDERS(H5T_IEEE_F16);
#endif
  H5EDIT_TYPE(H5T_NATIVE_CHAR);
  H5EDIT_TYPE(H5T_NATIVE_SCHAR);
  H5EDIT_TYPE(H5T_NATIVE_UCHAR);
  H5EDIT_TYPE(H5T_NATIVE_SHORT);
  H5EDIT_TYPE(H5T_NATIVE_USHORT);
  H5EDIT_TYPE(H5T_NATIVE_INT);
  H5EDIT_TYPE(H5T_NATIVE_UINT);
  H5EDIT_TYPE(H5T_NATIVE_LONG);
  H5EDIT_TYPE(H5T_NATIVE_ULONG);
  H5EDIT_TYPE(H5T_NATIVE_LLONG);
  H5EDIT_TYPE(H5T_NATIVE_ULLONG);
  H5EDIT_TYPE(H5T_NATIVE_FLOAT);
  H5EDIT_TYPE(H5T_NATIVE_DOUBLE);
  H5EDIT_TYPE(H5T_NATIVE_LDOUBLE);
  return H5I_INVALID_HID;
}

#undef H5EDIT_ORDERS
#undef H5EDIT_TYPE

// The low bytes of `word`, in the order that `order` says.
void AppendWord(uint64_t word, size_t size, H5T_order_t order, std::string* out) {
  char bytes[sizeof word];
  std::memcpy(bytes, &word, sizeof word);
  if (order == H5T_ORDER_BE) std::reverse(bytes, bytes + size);
  out->append(bytes, size);
}

uint64_t ReadWord(const char* bytes, size_t size, H5T_order_t order, bool is_signed) {
  char copy[sizeof(uint64_t)] = {};
  std::memcpy(copy, bytes, size);
  if (order == H5T_ORDER_BE) std::reverse(copy, copy + size);
  uint64_t word = 0;
  std::memcpy(&word, copy, sizeof word);
  const unsigned shift = static_cast<unsigned>(64 - size * 8);
  return is_signed ? static_cast<uint64_t>(static_cast<int64_t>(word << shift) >> shift) : word;
}

absl::StatusOr<Handle> MakeString(const TypeSpec& spec) {
  H5M_ASSIGN_OR_RETURN(Handle type,
                       Own(H5Tcopy(spec.is_fortran ? H5T_FORTRAN_S1 : H5T_C_S1), kMakeType));
  H5M_RETURN_IF_ERROR(
      Check(H5Tset_size(type.get(), spec.is_variable ? H5T_VARIABLE : spec.size), kMakeType));
  const H5T_str_t pad = spec.pad == StringPad::kSpacePad  ? H5T_STR_SPACEPAD
                        : spec.pad == StringPad::kNullPad ? H5T_STR_NULLPAD
                                                          : H5T_STR_NULLTERM;
  H5M_RETURN_IF_ERROR(Check(H5Tset_strpad(type.get(), pad), kMakeType));
  H5M_RETURN_IF_ERROR(
      Check(H5Tset_cset(type.get(), spec.is_utf8 ? H5T_CSET_UTF8 : H5T_CSET_ASCII), kMakeType));
  return type;
}

absl::StatusOr<Handle> MakeEnum(const TypeSpec& spec) {
  const hid_t base = PredefinedId(spec.name);
  H5M_ASSIGN_OR_RETURN(Handle type, Own(H5Tenum_create(base), kMakeType));
  const ElementType element = ElementTypeOf(spec);
  for (const ElementType::Member& member : element.members) {
    std::string raw;
    AppendWord(static_cast<uint64_t>(member.value), H5Tget_size(base), H5Tget_order(base), &raw);
    H5M_RETURN_IF_ERROR(
        Check(H5Tenum_insert(type.get(), member.name.c_str(), raw.data()), kMakeType));
  }
  return type;
}

absl::StatusOr<ElementType> EnumElement(hid_t type, ElementType element) {
  H5M_ASSIGN_OR_RETURN(const Handle base, Own(H5Tget_super(type), "look at the enum"));
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
    if (!got) return hdf5::ErrorOf("look at the enum");
  }
  return element;
}

}  // namespace

const char* ClassName(H5T_class_t type_class) {
  constexpr const char* kNames[] = {"H5T_INTEGER",  "H5T_FLOAT",  "H5T_TIME",     "H5T_STRING",
                                    "H5T_BITFIELD", "H5T_OPAQUE", "H5T_COMPOUND", "H5T_REFERENCE",
                                    "H5T_ENUM",     "H5T_VLEN",   "H5T_ARRAY"};
  const auto index = static_cast<size_t>(type_class);
  return type_class >= 0 && index < std::size(kNames) ? kNames[index] : "of an unknown class";
}

absl::StatusOr<Handle> MakeType(const TypeSpec& spec) {
  if (spec.type_class == TypeClass::kString) return MakeString(spec);
  if (spec.type_class == TypeClass::kEnum) return MakeEnum(spec);
  const hid_t id = PredefinedId(spec.name);
  if (id < 0) return absl::UnimplementedError(StrCat("this HDF5 has no type ", spec.name));
  return Own(H5Tcopy(id), kMakeType);
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

absl::StatusOr<ElementType> ElementTypeOf(hid_t type) {
  ElementType element;
  element.size_bytes = H5Tget_size(type);
  const H5T_class_t type_class = H5Tget_class(type);
  switch (type_class) {
    case H5T_INTEGER:
      if (element.size_bytes > sizeof(uint64_t))
        return absl::UnimplementedError("an integer of more than 64 bits");
      element.type_class = TypeClass::kInteger;
      element.bits = static_cast<unsigned>(H5Tget_precision(type));
      element.is_signed = H5Tget_sign(type) == H5T_SGN_2;
      return element;
    case H5T_FLOAT:
      element.type_class = TypeClass::kReal;
      element.largest = LargestReal(element.size_bytes);
      return element;
    case H5T_STRING: {
      element.type_class = TypeClass::kString;
      element.is_variable = H5Tis_variable_str(type) > 0;
      const H5T_str_t pad = H5Tget_strpad(type);
      element.pad = pad == H5T_STR_SPACEPAD  ? StringPad::kSpacePad
                    : pad == H5T_STR_NULLPAD ? StringPad::kNullPad
                                             : StringPad::kNullTerm;
      element.is_utf8 = H5Tget_cset(type) == H5T_CSET_UTF8;
      return element;
    }
    case H5T_ENUM:
      element.type_class = TypeClass::kEnum;
      return EnumElement(type, std::move(element));
    default:
      return absl::UnimplementedError(
          StrCat("values of class ", ClassName(type_class), " cannot be written in a script"));
  }
}

absl::StatusOr<MemoryValues> MemoryValues::Make(const ElementType& element, hid_t file_type,
                                                const ValueList& list) {
  MemoryValues made;
  made.encoded_ = EncodeValues(element, list);
  const bool is_enum = element.type_class == TypeClass::kEnum;
  const Encoded::Form form = made.encoded_.form;
  const hid_t model = is_enum || element.type_class == TypeClass::kString ? file_type
                      : form == Encoded::Form::kReal                      ? H5T_NATIVE_DOUBLE
                      : form == Encoded::Form::kSigned                    ? H5T_NATIVE_INT64
                                                                          : H5T_NATIVE_UINT64;
  H5M_ASSIGN_OR_RETURN(made.type_, Own(H5Tcopy(model), kMakeType));
  made.stride_ = H5Tget_size(made.type_.get());
  if (!is_enum) return made;
  H5M_ASSIGN_OR_RETURN(const Handle base, Own(H5Tget_super(file_type), kMakeType));
  for (uint64_t word : made.encoded_.words)
    AppendWord(word, element.size_bytes, H5Tget_order(base.get()), &made.raw_);
  return made;
}

}  // namespace h5mirror::edit
