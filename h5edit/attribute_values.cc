// Values of attributes: MODIFY, and the values of a script for a type in the file.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/executor.h"
#include "h5edit/h5_types.h"
#include "h5edit/memory_values.h"

namespace h5mirror::edit {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

namespace {

// The bytes of a value in an attribute's message. A value of variable length takes the bytes of its
// address there.
uint64_t BytesInFile(const ElementType& element) {
  constexpr uint64_t kPlaceBytes = 16;  // Length, address and index of a value in the global heap.
  if (element.is_variable || element.type_class == TypeClass::kList) return kPlaceBytes;
  uint64_t bytes = element.size_bytes;
  for (const ElementType& part : element.parts) {
    const uint64_t count = element.type_class == TypeClass::kArray ? element.count : 1;
    bytes += (BytesInFile(part) - part.size_bytes) * count;
  }
  return bytes;
}

// An upper limit of the bytes of an attribute's message, which an old header rounds up to words.
uint64_t MessageBytes(const std::string& name, hid_t type, hid_t space) {
  const auto words = [](uint64_t bytes) { return (bytes + 7) / 8 * 8; };
  const auto rank = static_cast<uint64_t>(std::max(H5Sget_simple_extent_ndims(space), 0));
  const auto count =
      static_cast<uint64_t>(std::max<hssize_t>(H5Sget_simple_extent_npoints(space), 0));
  const auto element = ElementTypeOf(type);
  const uint64_t value = element.ok() ? BytesInFile(*element) : H5Tget_size(type);
  return 9 + words(name.size() + 1) + words(EncodedBytes(type)) + words(8 + 16 * rank) +
         count * value;
}

}  // namespace

// Refuses what HDF5 1.14.5 writes but cannot read: a type of more bytes than 16 bits count, and in
// version 1 headers a message whose size fits into 16 bits only before it is rounded up to whole
// words.
absl::StatusOr<Handle> Executor::NewAttribute(const AttributeParts& parts, size_t at,
                                              const std::string& what) {
  constexpr uint64_t kMessageMax = UINT16_MAX / 8 * 8;
  if (EncodedBytes(parts.type) > UINT16_MAX)
    return Fail(at, StrCat(what, ": its type is too large to be written"));
  H5O_native_info_t header;
  H5M_RETURN_IF_ERROR(Check(H5Oget_native_info(parts.object, &header, H5O_NATIVE_INFO_HDR), what));
  if (header.hdr.version == 1 && MessageBytes(parts.name, parts.type, parts.space) > kMessageMax) {
    return Fail(at, StrCat(what, ": object header message is too large: it has at most ",
                           kMessageMax, " bytes, name and type included"));
  }
  Handle made(H5Acreate2(parts.object, parts.name.c_str(), parts.type, parts.space, parts.list,
                         H5P_DEFAULT));
  if (!made.valid()) return Fail(at, hdf5::ErrorOf(what));
  return made;
}

Scene Executor::TheScene() const { return {file_, access_.get(), std::nullopt}; }

absl::StatusOr<MemoryValues> Executor::ValuesOf(hid_t type, const ValueList& list, uint64_t count,
                                                size_t type_at) {
  auto element = ElementTypeOf(type);
  if (!element.ok()) return Fail(type_at, element.status());
  if (const auto wrong = CheckValues(*element, list, count)) return Fail(wrong->at, wrong->message);
  Scene scene = TheScene();
  auto values = MemoryValues::Make(*element, type, list, scene);
  if (!values.ok()) return Fail(scene.blame.value_or(type_at), values.status());
  return values;
}

absl::Status Executor::ModifyAttribute(const Statement& statement) {
  const Target& target = statement.target;
  H5M_ASSIGN_OR_RETURN(const Handle object, OpenTarget(target, KindRule::kAny));
  H5M_RETURN_IF_ERROR(CheckIsOurs(object.get(), target.object, target.object_at));
  H5M_RETURN_IF_ERROR(CheckThere(object.get(), target));
  const std::string what = StrCat("modify attribute ", target.attribute);
  H5M_ASSIGN_OR_RETURN(const Handle attribute,
                       Own(H5Aopen(object.get(), target.attribute.c_str(), H5P_DEFAULT), what));
  H5M_ASSIGN_OR_RETURN(const Handle type, Own(H5Aget_type(attribute.get()), what));
  H5M_ASSIGN_OR_RETURN(const Handle space, Own(H5Aget_space(attribute.get()), what));
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) {
    return Fail(target.attribute_at,
                StrCat("attribute ", target.attribute, " has the space NULL, which has no values"));
  }
  if (!statement.ranges.empty()) return ModifyElements(statement, attribute.get(), type.get());
  const auto count = static_cast<uint64_t>(H5Sget_simple_extent_npoints(space.get()));
  H5M_ASSIGN_OR_RETURN(const MemoryValues values,
                       ValuesOf(type.get(), statement.values, count, target.attribute_at));
  if (count == 0) return absl::OkStatus();  // HDF5 wants a buffer even then.
  return Check(H5Awrite(attribute.get(), values.type(), values.data()), what);
}

// HDF5 writes attributes whole. The others are written as they were, bit by bit: only the new ones
// are converted.
absl::Status Executor::ModifyElements(const Statement& statement, hid_t attribute, hid_t type) {
  H5M_ASSIGN_OR_RETURN(const Handle space, Own(H5Aget_space(attribute), "look at the attribute"));
  const auto rank = static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space.get()), 0));
  std::vector<hsize_t> dims(rank);
  H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
  if (rank != statement.ranges.size())
    return Fail(statement.ranges[0].at, StrCat("the attribute has ", rank, " dimensions"));
  uint64_t count = 1;
  for (size_t d = 0; d < rank; ++d) {
    const IndexRange& range = statement.ranges[d];
    if (range.start >= dims[d] || range.count > dims[d] - range.start) {
      return Fail(range.at, StrCat("beyond the attribute, whose dimension ", d + 1,
                                   " has the size ", dims[d]));
    }
    count *= range.count;
  }
  H5M_ASSIGN_OR_RETURN(const MemoryValues values,
                       ValuesOf(type, statement.values, count, statement.target.attribute_at));
  const H5T_class_t type_class = H5Tget_class(type);
  const bool is_number = type_class == H5T_INTEGER || type_class == H5T_FLOAT;
  const hid_t held = is_number ? type : values.type();
  const size_t stride = is_number ? H5Tget_size(type) : values.stride();
  std::string fresh(count * std::max(stride, values.stride()), '\0');
  if (count > 0) std::memcpy(fresh.data(), values.data(), count * values.stride());
  if (is_number) {
    H5M_RETURN_IF_ERROR(
        Check(H5Tconvert(values.type(), held, count, fresh.data(), nullptr, H5P_DEFAULT),
              "convert the values"));
  }
  const auto total = static_cast<size_t>(H5Sget_simple_extent_npoints(space.get()));
  std::string old(total * stride, '\0');
  H5M_RETURN_IF_ERROR(Check(H5Aread(attribute, held, old.data()), "read the attribute"));
  std::string merged = old;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t at = 0, rest = i, step = 1;
    for (size_t d = rank; d-- > 0;) {
      at += (statement.ranges[d].start + rest % statement.ranges[d].count) * step;
      rest /= statement.ranges[d].count;
      step *= dims[d];
    }
    std::memcpy(merged.data() + at * stride, fresh.data() + i * stride, stride);
  }
  absl::Status written = Check(H5Awrite(attribute, held, merged.data()), "write the attribute");
  hdf5::Reclaim(held, space.get(), old.data()).IgnoreError();
  return written;
}

}  // namespace h5mirror::edit
