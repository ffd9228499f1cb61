#include "h5edit/ddl.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/element_text.h"
#include "h5edit/h5_types.h"
#include "hdf5/handle.h"

namespace h5mirror::edit {
namespace {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

// h5dump breaks lines at this column, our lists at a count of values.
constexpr size_t kLineBytes = 70;

bool IsBfloat16(hid_t type) {
  size_t sign = 0, exponent_at = 0, exponent = 0, mantissa_at = 0, mantissa = 0;
  return H5Tget_size(type) == 2 &&
         H5Tget_fields(type, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa) >= 0 &&
         exponent == 8 && mantissa == 7 && H5Tget_ebias(type) == 127;
}

// "H5T_STD_I32BE" of a type that is one of the predefined.
std::string NumberName(hid_t type) {
  const size_t bits = H5Tget_size(type) * 8;
  const char* const order = H5Tget_order(type) == H5T_ORDER_BE ? "BE" : "LE";
  if (H5Tget_class(type) == H5T_FLOAT && IsBfloat16(type))
    return StrCat("H5T_FLOAT_BFLOAT16", order);
  if (H5Tget_class(type) == H5T_FLOAT)
    return bits <= 64 ? StrCat("H5T_IEEE_F", bits, order) : StrCat("H5T_NATIVE_LDOUBLE");
  if (H5Tget_class(type) == H5T_BITFIELD) return StrCat("H5T_STD_B", bits, order);
  return StrCat("H5T_STD_", H5Tget_sign(type) == H5T_SGN_2 ? "I" : "U", bits, order);
}

std::string StringDdl(hid_t type) {
  constexpr const char* kPads[] = {"NULLTERM", "NULLPAD", "SPACEPAD"};
  const auto pad = static_cast<size_t>(H5Tget_strpad(type));
  return StrCat("H5T_STRING { STRSIZE ",
                H5Tis_variable_str(type) > 0 ? "H5T_VARIABLE" : StrCat(H5Tget_size(type)),
                "; STRPAD H5T_STR_", pad < std::size(kPads) ? kPads[pad] : "?", "; CSET H5T_CSET_",
                H5Tget_cset(type) == H5T_CSET_UTF8 ? "UTF8" : "ASCII", "; CTYPE H5T_C_S1; }");
}

std::string CompoundDdl(hid_t type) {
  std::string text = "H5T_COMPOUND {";
  const int count = H5Tget_nmembers(type);
  for (int i = 0; i < count; ++i) {
    const Handle member(H5Tget_member_type(type, static_cast<unsigned>(i)));
    char* const name = H5Tget_member_name(type, static_cast<unsigned>(i));
    StrAppend(&text, " ", TypeDdl(member.get()), " ", QuotedText(name == nullptr ? "?" : name),
              ";");
    H5free_memory(name);
  }
  return text + " }";
}

std::string EnumDdl(hid_t type) {
  const Handle base(H5Tget_super(type));
  std::string text = StrCat("H5T_ENUM { ", TypeDdl(base.get()), ";");
  const auto element = ElementTypeOf(type);
  if (element.ok()) {
    for (const ElementType::Member& member : element->members)
      StrAppend(
          &text, " ", QuotedText(member.name), " ",
          element->is_signed ? StrCat(member.value) : StrCat(static_cast<uint64_t>(member.value)),
          ";");
  }
  return text + " }";
}

std::string ArrayDdl(hid_t type) {
  const Handle base(H5Tget_super(type));
  std::vector<hsize_t> dims(static_cast<size_t>(std::max(H5Tget_array_ndims(type), 0)));
  H5Tget_array_dims2(type, dims.data());
  std::string text = "H5T_ARRAY { ";
  for (hsize_t size : dims) StrAppend(&text, "[", size, "]");
  return StrCat(text, " ", TypeDdl(base.get()), " }");
}

std::string OpaqueDdl(hid_t type) {
  char* const tag = H5Tget_tag(type);
  std::string text = StrCat("H5T_OPAQUE { OPQ_SIZE ", H5Tget_size(type), "; OPAQUE_TAG ",
                            QuotedText(tag == nullptr ? "" : tag), "; }");
  H5free_memory(tag);
  return text;
}

std::string ReferenceDdl(hid_t type) {
  const char* const kind = H5Tequal(type, H5T_STD_REF_OBJ) > 0       ? "OBJECT"
                           : H5Tequal(type, H5T_STD_REF_DSETREG) > 0 ? "DSETREG"
                                                                     : nullptr;
  return StrCat("H5T_REFERENCE { H5T_STD_REF", kind == nullptr ? "" : "_",
                kind == nullptr ? "" : kind, " }");
}

// The path of a type that is committed; empty: it is not, or nothing leads to it.
std::string CommittedName(hid_t type) {
  if (H5Tcommitted(type) <= 0) return {};
  std::string name(static_cast<size_t>(std::max<ssize_t>(H5Iget_name(type, nullptr, 0), 0)) + 1,
                   '\0');
  H5Iget_name(type, name.data(), name.size());
  H5Eclear2(H5E_DEFAULT);
  name.pop_back();
  return name;
}

std::string IndexText(size_t index, const std::vector<hsize_t>& dims) {
  std::string text;
  for (size_t d = dims.size(); d-- > 0;) {
    text = StrCat(index % dims[d], text.empty() ? "" : ",", text);
    index /= dims[d];
  }
  return StrCat("(", text.empty() ? "0" : text, "): ");
}

// A line ends with the last dimension, or where it grows too long.
std::string DataDdl(hid_t object, hid_t type, hid_t space, const std::string& bytes) {
  const size_t step = H5Tget_size(type);
  std::vector<hsize_t> dims(static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space), 0)));
  if (!dims.empty()) H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  const size_t row = dims.empty() ? 1 : dims.back();
  const size_t count = bytes.size() / step;
  std::string text, line;
  for (size_t i = 0; i < count; ++i) {
    if (line.empty()) line = StrCat("   ", IndexText(i, dims));
    StrAppend(&line, ElementText(object, type, bytes.data() + i * step), i + 1 == count ? "" : ",");
    if (i + 1 == count || (i + 1) % row == 0 || line.size() > kLineBytes) {
      StrAppend(&text, line, "\n");
      line.clear();
    } else {
      line += ' ';
    }
  }
  return text;
}

// In the type that they have in the file: each element is converted where it is written.
absl::Status ReadData(hid_t attribute, hid_t type, hid_t space, std::string* out) {
  std::string bytes(static_cast<size_t>(H5Sget_simple_extent_npoints(space)) * H5Tget_size(type),
                    '\0');
  if (bytes.empty()) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(Check(H5Aread(attribute, type, bytes.data()), "read it"));
  *out = DataDdl(attribute, type, space, bytes);
  return hdf5::Reclaim(type, space, bytes.data());
}

absl::StatusOr<std::string> AttributeText(hid_t attribute, const std::string& name) {
  H5M_ASSIGN_OR_RETURN(const Handle type, Own(H5Aget_type(attribute), name));
  H5M_ASSIGN_OR_RETURN(const Handle space, Own(H5Aget_space(attribute), name));
  std::string text = StrCat("ATTRIBUTE ", QuotedText(name), " {\n   DATATYPE ", TypeDdl(type.get()),
                            "\n   DATASPACE ", SpaceDdl(space.get()), "\n");
  std::string data;
  if (H5Sget_simple_extent_type(space.get()) != H5S_NULL) {
    H5M_ASSIGN_OR_RETURN(const Handle memory, Own(H5Tcopy(type.get()), name));
    H5M_RETURN_IF_ERROR(ReadData(attribute, memory.get(), space.get(), &data));
  }
  return StrCat(text, "   DATA {\n", data, "   }\n}\n");
}

herr_t AppendAttribute(hid_t object, const char* name, const H5A_info_t*, void* out) {
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT));
  if (!attribute.valid()) return -1;
  const Handle type(H5Aget_type(attribute.get())), space(H5Aget_space(attribute.get()));
  StrAppend(static_cast<std::string*>(out), "   ATTRIBUTE ", QuotedText(name), " ",
            TypeDdl(type.get()), " ", SpaceDdl(space.get()), "\n");
  return 0;
}

herr_t AppendLink(hid_t group, const char* name, const H5L_info2_t* info, void* out) {
  auto* const text = static_cast<std::string*>(out);
  if (info->type == H5L_TYPE_HARD) {
    H5O_info2_t object;
    if (H5Oget_info_by_name3(group, name, &object, H5O_INFO_BASIC, H5P_DEFAULT) < 0) return -1;
    const char* const kind = object.type == H5O_TYPE_GROUP     ? "GROUP"
                             : object.type == H5O_TYPE_DATASET ? "DATASET"
                                                               : "DATATYPE";
    StrAppend(text, "   ", kind, " ", QuotedText(name), "\n");
    return 0;
  }
  std::string value(info->u.val_size + 1, '\0');
  if (H5Lget_val(group, name, value.data(), value.size(), H5P_DEFAULT) < 0) return -1;
  if (info->type == H5L_TYPE_SOFT) {
    StrAppend(text, "   SOFTLINK ", QuotedText(name), " -> ", QuotedText(value.c_str()), "\n");
    return 0;
  }
  const char* file = "";
  const char* path = "";
  if (info->type == H5L_TYPE_EXTERNAL)
    H5Lunpack_elink_val(value.data(), info->u.val_size, nullptr, &file, &path);
  StrAppend(text, "   EXTERNAL_LINK ", QuotedText(name), " -> ", QuotedText(file), " ",
            QuotedText(path), "\n");
  return 0;
}

}  // namespace

std::string TypeDdl(hid_t type) {
  if (const std::string name = CommittedName(type); !name.empty()) return QuotedText(name);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
    case H5T_BITFIELD:
      return NumberName(type);
    case H5T_STRING:
      return StringDdl(type);
    case H5T_COMPOUND:
      return CompoundDdl(type);
    case H5T_ENUM:
      return EnumDdl(type);
    case H5T_ARRAY:
      return ArrayDdl(type);
    case H5T_OPAQUE:
      return OpaqueDdl(type);
    case H5T_REFERENCE:
      return ReferenceDdl(type);
    case H5T_VLEN: {
      const Handle base(H5Tget_super(type));
      return StrCat("H5T_VLEN { ", TypeDdl(base.get()), " }");
    }
    default:
      return ClassName(H5Tget_class(type));
  }
}

std::string SpaceDdl(hid_t space) {
  const H5S_class_t kind = H5Sget_simple_extent_type(space);
  if (kind != H5S_SIMPLE) return kind == H5S_NULL ? "NULL" : "SCALAR";
  const auto rank = static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space), 0));
  std::vector<hsize_t> dims(rank), max_dims(rank);
  H5Sget_simple_extent_dims(space, dims.data(), max_dims.data());
  std::string now, most;
  for (size_t d = 0; d < rank; ++d) {
    StrAppend(&now, d == 0 ? "" : ", ", dims[d]);
    StrAppend(&most, d == 0 ? "" : ", ",
              max_dims[d] == H5S_UNLIMITED ? "H5S_UNLIMITED" : StrCat(max_dims[d]));
  }
  return StrCat("SIMPLE { ( ", now, " ) / ( ", most, " ) }");
}

absl::StatusOr<std::string> AttributeDdl(hid_t object, const std::string& name) {
  const htri_t exists = H5Aexists(object, name.c_str());
  if (exists == 0) return absl::NotFoundError(StrCat("no attribute ", name));
  H5M_ASSIGN_OR_RETURN(const Handle attribute,
                       Own(H5Aopen(object, name.c_str(), H5P_DEFAULT), name));
  return AttributeText(attribute.get(), name);
}

absl::StatusOr<std::string> ObjectListing(hid_t object, const std::string& path) {
  const H5I_type_t kind = H5Iget_type(object);
  std::string text = StrCat(kind == H5I_GROUP     ? "GROUP "
                            : kind == H5I_DATASET ? "DATASET "
                                                  : "DATATYPE ",
                            QuotedText(path), " {\n");
  if (kind == H5I_DATASET) {
    const Handle type(H5Dget_type(object)), space(H5Dget_space(object));
    StrAppend(&text, "   DATATYPE ", TypeDdl(type.get()), "\n   DATASPACE ", SpaceDdl(space.get()),
              "\n");
  }
  H5M_RETURN_IF_ERROR(
      Check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, AppendAttribute, &text),
            "list attributes"));
  if (kind == H5I_GROUP) {
    H5M_RETURN_IF_ERROR(Check(
        H5Literate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, AppendLink, &text), "list links"));
  }
  return text + "}\n";
}

}  // namespace h5mirror::edit
