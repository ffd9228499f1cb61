#include "hdf5/open_check.h"

#include <string>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "hdf5/byte_driver.h"
#include "hdf5/source_driver.h"

namespace h5mirror::hdf5 {
namespace {

// Attributes are small; a header that says otherwise gets no memory for it.
constexpr hsize_t kAttributeBytesMax = 64 << 20;

absl::Status ReadAttribute(hid_t object, const std::string& name, const std::string& path) {
  const std::string what = StrCat(path, ", attribute ", name);
  H5M_ASSIGN_OR_RETURN(const Handle attribute,
                       Own(H5Aopen(object, name.c_str(), H5P_DEFAULT), what));
  H5M_ASSIGN_OR_RETURN(const Handle type, Own(H5Aget_type(attribute.get()), what));
  H5M_ASSIGN_OR_RETURN(const Handle space, Own(H5Aget_space(attribute.get()), what));
  const hsize_t bytes = H5Aget_storage_size(attribute.get());
  const bool is_variable = H5Tdetect_class(type.get(), H5T_VLEN) > 0 ||
                           H5Tis_variable_str(type.get()) > 0 ||
                           H5Tdetect_class(type.get(), H5T_REFERENCE) > 0;
  if (is_variable || bytes == 0 || bytes > kAttributeBytesMax) return absl::OkStatus();
  std::vector<char> value(bytes);
  return Check(H5Aread(attribute.get(), type.get(), value.data()), what);
}

herr_t AddName(hid_t, const char* name, const H5A_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

absl::Status ReadAttributes(hid_t object, const std::string& path, OpenedObjects* opened) {
  std::vector<std::string> names;
  hsize_t at = 0;
  H5M_RETURN_IF_ERROR(
      Check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &at, AddName, &names),
            StrCat(path, ", its attributes")));
  for (const std::string& name : names) {
    H5M_RETURN_IF_ERROR(ReadAttribute(object, name, path));
    ++opened->attributes;
  }
  return absl::OkStatus();
}

int CountChunk(const hsize_t*, unsigned, haddr_t, hsize_t, void*) { return 0; }

absl::Status ReadDataset(hid_t dataset, const std::string& path) {
  H5M_ASSIGN_OR_RETURN(const Handle type, Own(H5Dget_type(dataset), path));
  H5M_ASSIGN_OR_RETURN(const Handle space, Own(H5Dget_space(dataset), path));
  H5M_ASSIGN_OR_RETURN(const Handle plist, Own(H5Dget_create_plist(dataset), path));
  if (H5Pget_layout(plist.get()) != H5D_CHUNKED) return absl::OkStatus();
  return Check(H5Dchunk_iter(dataset, H5P_DEFAULT, CountChunk, nullptr),
               StrCat(path, ", the index of its chunks"));
}

// The state of a visit of all objects; HDF5 calls back through C.
struct Visit {
  OpenedObjects opened;
  absl::Status status;
};

absl::Status OpenObject(hid_t root, const char* name, const H5O_info2_t& info, Visit& visit) {
  const std::string path = std::string_view(name) == "." ? "/" : StrCat("/", name);
  H5M_ASSIGN_OR_RETURN(const Handle object, Own(H5Oopen(root, name, H5P_DEFAULT), path));
  ++visit.opened.objects;
  H5M_RETURN_IF_ERROR(ReadAttributes(object.get(), path, &visit.opened));
  return info.type == H5O_TYPE_DATASET ? ReadDataset(object.get(), path) : absl::OkStatus();
}

herr_t OnObject(hid_t root, const char* name, const H5O_info2_t* info, void* context) {
  Visit& visit = *static_cast<Visit*>(context);
  visit.status = OpenObject(root, name, *info, visit);
  return visit.status.ok() ? 0 : -1;
}

}  // namespace

absl::StatusOr<OpenedObjects> OpenAllObjects(ByteSource& source) {
  H5M_RETURN_IF_ERROR(StartLibrary());
  Visit visit;
  const auto open = [&]() -> absl::Status {
    H5M_ASSIGN_OR_RETURN(const SourceFile file, SourceFile::Open(source, nullptr));
    const herr_t visited =
        H5Ovisit3(file.id(), H5_INDEX_NAME, H5_ITER_NATIVE, OnObject, &visit, H5O_INFO_BASIC);
    const absl::Status status = Check(visited, "visit all objects");
    return visit.status.ok() ? status : visit.status;
  };
  const absl::Status opened = open();
  H5M_RETURN_IF_ERROR(TakeDriverError());  // What HDF5 made of it says less.
  H5M_RETURN_IF_ERROR(opened);
  return visit.opened;
}

}  // namespace h5mirror::hdf5
