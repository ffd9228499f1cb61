#include "h5edit/references.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/bytes_text.h"
#include "h5edit/element_text.h"

namespace h5mirror::edit {
namespace {

using hdf5::Check;
using hdf5::Handle;
using hdf5::Own;

constexpr char kMake[] = "make a reference";

// The path behind the name of the file, which h5dump writes before it; empty: there is none.
std::string WithoutFileName(const std::string& text, hid_t file) {
  std::string name(static_cast<size_t>(std::max<ssize_t>(H5Fget_name(file, nullptr, 0), 0)) + 1,
                   '\0');
  H5Fget_name(file, name.data(), name.size());
  const std::string last = std::filesystem::path(name.c_str()).filename().string() + "/";
  const size_t at = text.find(last);
  if (at == std::string::npos || (at > 0 && text[at - 1] != '/')) return {};
  return text.substr(at + last.size() - 1);
}

absl::StatusOr<Handle> OpenReferenced(const Value& value, Scene& scene) {
  const std::string path = value.text.starts_with('/') ? value.text : "/" + value.text;
  if (value.kind == Value::Kind::kReference) {
    const std::string rest = WithoutFileName(value.text, scene.file);
    const bool is_there = H5Oexists_by_name(scene.file, path.c_str(), scene.access) > 0;
    H5Eclear2(H5E_DEFAULT);
    if (!is_there && !rest.empty()) return OpenInFile(rest, value.at, scene);
  }
  return OpenInFile(path, value.at, scene);
}

bool IsKind(ObjectWord word, H5I_type_t kind) {
  return word == ObjectWord::kNone || (word == ObjectWord::kDataset && kind == H5I_DATASET) ||
         (word == ObjectWord::kGroup && kind == H5I_GROUP) ||
         (word == ObjectWord::kDatatype && kind == H5I_DATATYPE);
}

const char* WordOfKind(H5I_type_t kind) {
  return kind == H5I_GROUP ? "GROUP" : kind == H5I_DATASET ? "DATASET" : "DATATYPE";
}

// Adds elements [first, last] of each dimension to the selection.
absl::Status SelectBlock(hid_t space, const std::vector<hsize_t>& first,
                         const std::vector<hsize_t>& last) {
  std::vector<hsize_t> count(first.size());
  for (size_t d = 0; d < first.size(); ++d) count[d] = last[d] - first[d] + 1;
  return Check(
      H5Sselect_hyperslab(space, H5S_SELECT_OR, first.data(), nullptr, count.data(), nullptr),
      kMake);
}

absl::StatusOr<std::vector<hsize_t>> CornerOf(const Value& corner, const std::vector<hsize_t>& dims,
                                              const std::string& path, Scene& scene) {
  if (corner.items.size() != dims.size())
    return scene.Fail(corner.at, StrCat(path, " has ", dims.size(), " dimensions"));
  std::vector<hsize_t> index;
  for (size_t d = 0; d < dims.size(); ++d) {
    const uint64_t at = corner.items[d].number.magnitude;
    if (at >= dims[d]) {
      return scene.Fail(corner.items[d].at, StrCat("beyond ", path, ", whose dimension ", d + 1,
                                                   " has the size ", dims[d]));
    }
    index.push_back(at);
  }
  return index;
}

absl::StatusOr<Handle> RegionOf(hid_t dataset, const Value& value, Scene& scene) {
  H5M_ASSIGN_OR_RETURN(Handle space, Own(H5Dget_space(dataset), kMake));
  const auto rank = static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space.get()), 0));
  if (rank == 0) return scene.Fail(value.at, StrCat(value.text, " has no dimensions"));
  std::vector<hsize_t> dims(rank), points;
  H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
  H5M_RETURN_IF_ERROR(Check(H5Sselect_none(space.get()), kMake));
  const bool is_blocks = value.region == Value::Region::kBlocks;
  for (size_t i = 0; i < value.items.size(); ++i) {
    H5M_ASSIGN_OR_RETURN(const auto first, CornerOf(value.items[i], dims, value.text, scene));
    if (!is_blocks) {
      points.insert(points.end(), first.begin(), first.end());
      continue;
    }
    const Value& end = value.items[++i];
    H5M_ASSIGN_OR_RETURN(const auto last, CornerOf(end, dims, value.text, scene));
    for (size_t d = 0; d < rank; ++d) {
      if (last[d] < first[d]) return scene.Fail(end.items[d].at, "a block ends before it begins");
    }
    H5M_RETURN_IF_ERROR(SelectBlock(space.get(), first, last));
  }
  if (is_blocks) return space;
  H5M_RETURN_IF_ERROR(Check(
      H5Sselect_elements(space.get(), H5S_SELECT_SET, points.size() / rank, points.data()), kMake));
  return space;
}

std::string CornerText(const hsize_t* index, size_t rank) {
  std::string text = "(";
  for (size_t d = 0; d < rank; ++d) StrAppend(&text, d == 0 ? "" : ",", index[d]);
  return text + ")";
}

std::string RegionText(hid_t space) {
  const auto rank = static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(space), 0));
  if (H5Sget_select_type(space) == H5S_SEL_POINTS) {
    const hssize_t count = H5Sget_select_elem_npoints(space);
    std::vector<hsize_t> points(static_cast<size_t>(count) * rank);
    H5Sget_select_elem_pointlist(space, 0, static_cast<hsize_t>(count), points.data());
    std::string text = " {REGION_TYPE POINT ";
    for (size_t i = 0; i < points.size(); i += rank)
      StrAppend(&text, i == 0 ? "" : ", ", CornerText(points.data() + i, rank));
    return text + "}";
  }
  const hssize_t count = std::max<hssize_t>(H5Sget_select_hyper_nblocks(space), 0);
  std::vector<hsize_t> blocks(static_cast<size_t>(count) * rank * 2);
  if (count > 0)
    H5Sget_select_hyper_blocklist(space, 0, static_cast<hsize_t>(count), blocks.data());
  std::string text = " {REGION_TYPE BLOCK ";
  for (size_t i = 0; i < blocks.size(); i += 2 * rank) {
    StrAppend(&text, i == 0 ? "" : ", ", CornerText(blocks.data() + i, rank), "-",
              CornerText(blocks.data() + i + rank, rank));
  }
  return text + "}";
}

// `DATASET "/d"`.
std::string ObjectText(hid_t object) {
  const ssize_t length = std::max<ssize_t>(H5Iget_name(object, nullptr, 0), 0);
  std::string name(static_cast<size_t>(length) + 1, '\0');
  H5Iget_name(object, name.data(), name.size());
  name.pop_back();
  return StrCat(WordOfKind(H5Iget_type(object)), " ", QuotedText(name));
}

std::string OldReferenceText(hid_t object, hid_t type, const char* bytes) {
  const size_t size = H5Tget_size(type);
  const bool is_region = H5Tequal(type, H5T_STD_REF_DSETREG) > 0;
  if (std::all_of(bytes, bytes + size, [](char byte) { return byte == 0; })) return "NULL";
  const H5R_type_t kind = is_region ? H5R_DATASET_REGION : H5R_OBJECT;
  const std::vector<char> copy(bytes, bytes + size);
  const Handle target(H5Rdereference2(object, H5P_DEFAULT, kind, copy.data()));
  if (!target.valid()) return BytesText({bytes, size});  // What it led to is gone.
  const std::string text = ObjectText(target.get());
  const Handle space(is_region ? H5Rget_region(object, kind, copy.data()) : H5I_INVALID_HID);
  return space.valid() ? text + RegionText(space.get()) : text;
}

// Of the type H5T_STD_REF, which only HDF5 1.12 and later have.
std::string NewReferenceText(const char* bytes) {
  H5R_ref_t reference;
  std::memcpy(&reference, bytes, sizeof reference);
  const H5R_type_t kind = H5Rget_type(&reference);
  if (kind == H5R_BADTYPE) return "NULL";
  const Handle target(H5Ropen_object(&reference, H5P_DEFAULT, H5P_DEFAULT));
  if (!target.valid()) return "NULL";  // What it led to is gone.
  std::string text = ObjectText(target.get());
  if (kind == H5R_ATTR) {
    const ssize_t length = std::max<ssize_t>(H5Rget_attr_name(&reference, nullptr, 0), 0);
    std::string name(static_cast<size_t>(length) + 1, '\0');
    H5Rget_attr_name(&reference, name.data(), name.size());
    StrAppend(&text, " ATTRIBUTE ", QuotedText(name.c_str()));
  }
  const Handle space(kind == H5R_DATASET_REGION2
                         ? H5Ropen_region(&reference, H5P_DEFAULT, H5P_DEFAULT)
                         : H5I_INVALID_HID);
  return space.valid() ? text + RegionText(space.get()) : text;
}

}  // namespace

absl::StatusOr<Handle> OpenInFile(const std::string& path, size_t at, Scene& scene) {
  scene.blame = at;
  Handle object(H5Oopen(scene.file, path.c_str(), scene.access));
  if (!object.valid()) {
    H5Eclear2(H5E_DEFAULT);
    return absl::NotFoundError(StrCat("no such object ", path));
  }
  H5O_info2_t theirs, ours;
  H5M_RETURN_IF_ERROR(Check(H5Oget_info3(object.get(), &theirs, H5O_INFO_BASIC), path));
  H5M_RETURN_IF_ERROR(Check(H5Oget_info3(scene.file, &ours, H5O_INFO_BASIC), path));
  if (theirs.fileno != ours.fileno)
    return scene.Fail(at, StrCat(path, " lies in another file, to which an external link leads"));
  scene.blame.reset();
  return object;
}

absl::Status MakeReference(const ElementType& element, const Value& value, Scene& scene,
                           char* out) {
  if (value.kind == Value::Kind::kNull) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(const Handle object, OpenReferenced(value, scene));
  const H5I_type_t kind = H5Iget_type(object.get());
  if (!IsKind(value.word, kind))
    return scene.Fail(value.at, StrCat(value.text, " is a ", WordOfKind(kind)));
  if (!element.is_region) {
    hobj_ref_t made = 0;
    H5M_RETURN_IF_ERROR(
        Check(H5Rcreate(&made, object.get(), ".", H5R_OBJECT, H5I_INVALID_HID), kMake));
    std::memcpy(out, &made, sizeof made);
    return absl::OkStatus();
  }
  if (kind != H5I_DATASET)
    return scene.Fail(value.at, StrCat(value.text, " is not a dataset, and has no region"));
  H5M_ASSIGN_OR_RETURN(const Handle space, RegionOf(object.get(), value, scene));
  hdset_reg_ref_t made{};
  H5M_RETURN_IF_ERROR(
      Check(H5Rcreate(&made, object.get(), ".", H5R_DATASET_REGION, space.get()), kMake));
  std::memcpy(out, &made, sizeof made);
  return absl::OkStatus();
}

std::string ReferenceText(hid_t object, hid_t type, const char* bytes) {
  const bool is_new = H5Tequal(type, H5T_STD_REF) > 0;
  const std::string text = is_new ? NewReferenceText(bytes) : OldReferenceText(object, type, bytes);
  H5Eclear2(H5E_DEFAULT);
  return text;
}

}  // namespace h5mirror::edit
