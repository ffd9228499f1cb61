// Types in the file, of what a script says.
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/h5_types.h"
#include "h5edit/references.h"

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
  H5EDIT_ORDERS(H5T_STD_B8);
  H5EDIT_ORDERS(H5T_STD_B16);
  H5EDIT_ORDERS(H5T_STD_B32);
  H5EDIT_ORDERS(H5T_STD_B64);
  H5EDIT_TYPE(H5T_NATIVE_B8);
  H5EDIT_TYPE(H5T_NATIVE_B16);
  H5EDIT_TYPE(H5T_NATIVE_B32);
  H5EDIT_TYPE(H5T_NATIVE_B64);
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

// bfloat16, which HDF5 1.14 has no name for: the upper half of a 32-bit float.
absl::StatusOr<Handle> MakeBfloat16(bool is_big_endian) {
  H5M_ASSIGN_OR_RETURN(Handle type,
                       Own(H5Tcopy(is_big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE), kMakeType));
  H5M_RETURN_IF_ERROR(Check(H5Tset_fields(type.get(), 15, 7, 8, 0, 7), kMakeType));
  H5M_RETURN_IF_ERROR(Check(H5Tset_size(type.get(), 2), kMakeType));
  H5M_RETURN_IF_ERROR(Check(H5Tset_ebias(type.get(), 127), kMakeType));
  return type;
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

// A committed type has a size that the script alone does not tell.
absl::Status CheckBytes(const TypeSpec& spec, uint64_t bytes, Scene& scene) {
  if (bytes <= kTypeBytesMax) return absl::OkStatus();
  return scene.Fail(
      spec.at, StrCat("the type is too large: a value of it may have ", kTypeBytesMax, " bytes"));
}

absl::StatusOr<Handle> MakeCompound(const TypeSpec& spec, Scene& scene) {
  std::vector<Handle> parts;
  size_t size = 0;
  for (const TypeSpec& part : spec.parts) {
    H5M_ASSIGN_OR_RETURN(Handle type, MakeType(part, scene));
    size += H5Tget_size(type.get());
    H5M_RETURN_IF_ERROR(CheckBytes(part, size, scene));
    parts.push_back(std::move(type));
  }
  H5M_ASSIGN_OR_RETURN(Handle type, Own(H5Tcreate(H5T_COMPOUND, size), kMakeType));
  size_t offset = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    H5M_RETURN_IF_ERROR(Check(
        H5Tinsert(type.get(), spec.parts[i].member.c_str(), offset, parts[i].get()), kMakeType));
    offset += H5Tget_size(parts[i].get());
  }
  return type;
}

absl::StatusOr<Handle> MakeArray(const TypeSpec& spec, Scene& scene) {
  H5M_ASSIGN_OR_RETURN(const Handle base, MakeType(spec.parts[0], scene));
  const std::vector<hsize_t> dims(spec.dims.begin(), spec.dims.end());
  uint64_t bytes = H5Tget_size(base.get());
  for (const hsize_t size : dims) {  // None is larger than the limit: no product overflows.
    bytes *= size;
    H5M_RETURN_IF_ERROR(CheckBytes(spec, bytes, scene));
  }
  return Own(H5Tarray_create2(base.get(), static_cast<unsigned>(dims.size()), dims.data()),
             kMakeType);
}

absl::StatusOr<Handle> MakeOpaque(const TypeSpec& spec) {
  H5M_ASSIGN_OR_RETURN(Handle type, Own(H5Tcreate(H5T_OPAQUE, spec.size), kMakeType));
  H5M_RETURN_IF_ERROR(Check(H5Tset_tag(type.get(), spec.tag.c_str()), kMakeType));
  return type;
}

absl::StatusOr<Handle> OpenCommitted(const TypeSpec& spec, Scene& scene) {
  H5M_ASSIGN_OR_RETURN(Handle type, OpenInFile(spec.name, spec.at, scene));
  if (H5Iget_type(type.get()) == H5I_DATATYPE) return type;
  return scene.Fail(spec.at, StrCat(spec.name, " is not a committed type"));
}

}  // namespace

absl::StatusOr<Handle> MakeType(const TypeSpec& spec, Scene& scene) {
  switch (spec.type_class) {
    case TypeClass::kString:
      return MakeString(spec);
    case TypeClass::kEnum:
      return MakeEnum(spec);
    case TypeClass::kCompound:
      return MakeCompound(spec, scene);
    case TypeClass::kArray:
      return MakeArray(spec, scene);
    case TypeClass::kList: {
      H5M_ASSIGN_OR_RETURN(const Handle base, MakeType(spec.parts[0], scene));
      return Own(H5Tvlen_create(base.get()), kMakeType);
    }
    case TypeClass::kOpaque:
      return MakeOpaque(spec);
    case TypeClass::kReference:
      return Own(H5Tcopy(spec.is_region ? H5T_STD_REF_DSETREG : H5T_STD_REF_OBJ), kMakeType);
    case TypeClass::kCommitted:
      return OpenCommitted(spec, scene);
    default:
      break;
  }
  if (spec.name.starts_with("H5T_FLOAT_BFLOAT16")) return MakeBfloat16(spec.name.ends_with("BE"));
  const hid_t id = PredefinedId(spec.name);
  if (id < 0) return absl::UnimplementedError(StrCat("this HDF5 has no type ", spec.name));
  return Own(H5Tcopy(id), kMakeType);
}

}  // namespace h5mirror::edit
