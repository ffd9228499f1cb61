#include "h5edit/memory_values.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/bytes_text.h"
#include "h5edit/references.h"

namespace h5mirror::edit {
namespace {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

constexpr char kWhat[] = "convert the values";

// A type with those that it is made of, opened once for all values.
struct TypeTree {
  Handle type;
  size_t size = 0;
  size_t offset = 0;  // in a compound
  H5T_order_t order = H5T_ORDER_LE;
  std::vector<TypeTree> parts;
};

absl::StatusOr<TypeTree> TreeOf(Handle type, const ElementType& element) {
  TypeTree tree;
  tree.size = H5Tget_size(type.get());
  if (element.type_class == TypeClass::kEnum || element.type_class == TypeClass::kBitfield)
    tree.order = H5Tget_order(type.get());
  const bool is_compound = element.type_class == TypeClass::kCompound;
  for (size_t i = 0; i < element.parts.size(); ++i) {
    const auto index = static_cast<unsigned>(i);
    H5M_ASSIGN_OR_RETURN(
        Handle part,
        Own(is_compound ? H5Tget_member_type(type.get(), index) : H5Tget_super(type.get()), kWhat));
    H5M_ASSIGN_OR_RETURN(TypeTree below, TreeOf(std::move(part), element.parts[i]));
    below.offset = is_compound ? H5Tget_member_offset(type.get(), index) : 0;
    tree.parts.push_back(std::move(below));
  }
  tree.type = std::move(type);
  return tree;
}

// One value after the other, in the form that they have in memory for the type in the file.
class Encoder {
 public:
  Encoder(Scene& scene, MemoryValues::Elsewhere& elsewhere)
      : scene_(scene), elsewhere_(elsewhere) {}

  // `out` has room for the type, and zeros in it.
  absl::Status Encode(const TypeTree& tree, const ElementType& element, const Value& value,
                      char* out) {
    switch (element.type_class) {
      case TypeClass::kCompound:
        for (size_t i = 0; i < tree.parts.size(); ++i) {
          H5M_RETURN_IF_ERROR(
              Encode(tree.parts[i], element.parts[i], value.items[i], out + tree.parts[i].offset));
        }
        return absl::OkStatus();
      case TypeClass::kArray:
        return Items(tree, element, value, out);
      case TypeClass::kList:
        return List(tree, element, value, out);
      case TypeClass::kReference:
        return MakeReference(element, value, scene_, out);
      default:
        return Plain(tree, element, value, out);
    }
  }

 private:
  absl::Status Items(const TypeTree& tree, const ElementType& element, const Value& value,
                     char* out) {
    const size_t step = tree.parts[0].size;
    for (size_t i = 0; i < value.items.size(); ++i) {
      H5M_RETURN_IF_ERROR(Encode(tree.parts[0], element.parts[0], value.items[i], out + i * step));
    }
    return absl::OkStatus();
  }

  absl::Status List(const TypeTree& tree, const ElementType& element, const Value& value,
                    char* out) {
    hvl_t list{};
    list.len = value.items.size();
    if (list.len > 0) {
      const size_t bytes = list.len * tree.parts[0].size;
      list.p = elsewhere_.lists.emplace_back((bytes + 7) / 8).data();
      H5M_RETURN_IF_ERROR(Items(tree, element, value, static_cast<char*>(list.p)));
    }
    std::memcpy(out, &list, sizeof list);
    return absl::OkStatus();
  }

  absl::Status Plain(const TypeTree& tree, const ElementType& element, const Value& value,
                     char* out) {
    switch (element.type_class) {
      case TypeClass::kInteger: {
        const uint64_t word = WordOf(element, value);
        return Convert(element.is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64, BytesOf(word),
                       tree, out);
      }
      case TypeClass::kReal:
        if (element.is_wide) return Convert(H5T_NATIVE_LDOUBLE, WideBytesOf(value), tree, out);
        return Convert(H5T_NATIVE_DOUBLE, BytesOf(RealOf(element, value)), tree, out);
      case TypeClass::kString:
        if (element.is_variable) return Text(value, out);
        return Put(FixedStringOf(element, value), out);
      case TypeClass::kBitfield:
        return Word(WordOf(element, value) << H5Tget_offset(tree.type.get()), tree, out);
      case TypeClass::kOpaque: {
        std::string bytes;
        ParseBytes(value.text, &bytes);
        return Put(bytes, out);
      }
      default:
        return Word(WordOf(element, value), tree, out);
    }
  }

  static std::string BytesOf(auto number) {
    return std::string(reinterpret_cast<const char*>(&number), sizeof number);
  }

  absl::Status Convert(hid_t from, const std::string& number, const TypeTree& tree, char* out) {
    std::array<char, 64> bytes{};
    if (tree.size > bytes.size()) return absl::UnimplementedError("a number of more than 64 bytes");
    std::memcpy(bytes.data(), number.data(), number.size());
    H5M_RETURN_IF_ERROR(
        Check(H5Tconvert(from, tree.type.get(), 1, bytes.data(), nullptr, H5P_DEFAULT), kWhat));
    std::memcpy(out, bytes.data(), tree.size);
    return absl::OkStatus();
  }

  absl::Status Text(const Value& value, char* out) {
    if (value.kind == Value::Kind::kNull) return absl::OkStatus();
    const char* const text = elsewhere_.texts.emplace_back(value.text).c_str();
    std::memcpy(out, &text, sizeof text);
    return absl::OkStatus();
  }

  static absl::Status Put(const std::string& bytes, char* out) {
    std::memcpy(out, bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  static absl::Status Word(uint64_t word, const TypeTree& tree, char* out) {
    std::string bytes;
    AppendWord(word, tree.size, tree.order, &bytes);
    return Put(bytes, out);
  }

  Scene& scene_;
  MemoryValues::Elsewhere& elsewhere_;
};

}  // namespace

absl::StatusOr<MemoryValues> MemoryValues::Make(const ElementType& element, hid_t file_type,
                                                const ValueList& list, Scene& scene) {
  MemoryValues made;
  const TypeClass type_class = element.type_class;
  const bool is_number = type_class == TypeClass::kInteger || type_class == TypeClass::kReal;
  if (is_number || type_class == TypeClass::kString) {
    made.encoded_ = EncodeValues(element, list);
    const hid_t real = element.is_wide ? H5T_NATIVE_LDOUBLE : H5T_NATIVE_DOUBLE;
    const hid_t model = !is_number                       ? file_type
                        : type_class == TypeClass::kReal ? real
                        : element.is_signed              ? H5T_NATIVE_INT64
                                                         : H5T_NATIVE_UINT64;
    H5M_ASSIGN_OR_RETURN(made.type_, Own(H5Tcopy(model), kWhat));
    made.stride_ = H5Tget_size(made.type_.get());
    return made;
  }
  H5M_ASSIGN_OR_RETURN(made.type_, Own(H5Tcopy(file_type), kWhat));
  made.stride_ = H5Tget_size(made.type_.get());
  H5M_ASSIGN_OR_RETURN(Handle copy, Own(H5Tcopy(file_type), kWhat));
  H5M_ASSIGN_OR_RETURN(const TypeTree tree, TreeOf(std::move(copy), element));
  made.raw_.resize(list.values.size() * made.stride_);
  Encoder encoder(scene, made.elsewhere_);
  for (size_t i = 0; i < list.values.size(); ++i) {
    H5M_RETURN_IF_ERROR(
        encoder.Encode(tree, element, list.values[i], made.raw_.data() + i * made.stride_));
  }
  return made;
}

}  // namespace h5mirror::edit
