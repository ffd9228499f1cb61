#include "h5edit/edit_driver.h"

#include <H5FDdevelop.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/beside.h"

namespace h5mirror::edit {
namespace {

// Which file the EditFile is of: HDF5 opens those that links and virtual datasets lead to with the
// same properties.
struct Info {
  EditFile* bytes;
  dev_t device;
  ino_t inode;
};

// HDF5 sees the first member and takes the rest along.
struct OpenFile {
  H5FD_t pub{};
  Info info{};  // of the file that is edited, whichever this one is
  EditFile* bytes = nullptr;
  std::unique_ptr<EditFile> own;  // of another file, which is only read
  std::string name;
  haddr_t eoa = 0;
};

absl::Status& LastError() {
  static absl::Status error;
  return error;
}

OpenFile* Of(H5FD_t* file) { return reinterpret_cast<OpenFile*>(file); }
const OpenFile* Of(const H5FD_t* file) { return reinterpret_cast<const OpenFile*>(file); }

herr_t Noted(absl::Status status) {
  if (status.ok()) return 0;
  LastError() = std::move(status);
  return -1;
}

// A file that is only read, and that no edit was broken off in.
absl::StatusOr<std::unique_ptr<EditFile>> OpenOther(const char* name) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(name, error);
  if (error) return ErrnoToStatus(error.value(), StrCat("cannot open ", name));
  H5M_RETURN_IF_ERROR(CheckCanAskBeside(real));
  H5M_ASSIGN_OR_RETURN(auto file, OpenInMemory(real));
  H5M_RETURN_IF_ERROR(CheckAtRest(real, name));
  return file;
}

H5FD_t* OpenBytes(const char* name, unsigned, hid_t fapl, haddr_t) {
  const auto* info = static_cast<const Info*>(H5Pget_driver_info(fapl));
  struct stat st {};
  if (info == nullptr || stat(name, &st) != 0) return nullptr;
  auto file = std::make_unique<OpenFile>();
  file->info = *info;
  file->bytes = info->bytes;
  file->name = name;
  if (st.st_dev != info->device || st.st_ino != info->inode) {
    auto other = OpenOther(name);
    if (!other.ok()) return nullptr;
    file->own = *std::move(other);
    file->bytes = file->own.get();
  }
  return &file.release()->pub;
}

// For the files that links of this one lead to. HDF5 frees it.
void* InfoOf(H5FD_t* file) {
  void* const copy = H5allocate_memory(sizeof(Info), false);
  if (copy != nullptr) *static_cast<Info*>(copy) = Of(file)->info;
  return copy;
}

herr_t CloseBytes(H5FD_t* file) {
  delete Of(file);
  return 0;
}

int CompareBytes(const H5FD_t* one, const H5FD_t* other) {
  const auto a = reinterpret_cast<uintptr_t>(Of(one)->bytes);
  const auto b = reinterpret_cast<uintptr_t>(Of(other)->bytes);
  return a < b ? -1 : a > b ? 1 : 0;
}

herr_t QueryFeatures(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t GetEoa(const H5FD_t* file, H5FD_mem_t) { return Of(file)->eoa; }
haddr_t GetEof(const H5FD_t* file, H5FD_mem_t) { return Of(file)->bytes->size_bytes(); }

herr_t SetEoa(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  Of(file)->eoa = address;
  return 0;
}

herr_t ReadBytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t size, void* buffer) {
  return Noted(Of(file)->bytes->Read(offset, {static_cast<char*>(buffer), size}));
}

// Whatever HDF5 has opened it for.
absl::Status CheckIsEdited(const OpenFile& file) {
  if (file.own == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      StrCat(file.name, " is another file than the one that is edited: edit that file"));
}

herr_t WriteBytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t size,
                  const void* buffer) {
  const absl::Status is_edited = CheckIsEdited(*Of(file));
  if (!is_edited.ok()) return Noted(is_edited);
  return Noted(Of(file)->bytes->Write(offset, {static_cast<const char*>(buffer), size}));
}

herr_t TruncateBytes(H5FD_t* file, hid_t, hbool_t) {
  OpenFile& open = *Of(file);
  if (open.own != nullptr || open.eoa == open.bytes->size_bytes()) return 0;
  return Noted(open.bytes->Truncate(open.eoa));
}

// Without `lock`: HDF5 marks no file as open then, and no cut has such a mark in it. The lock of
// the file is the EditFile's.
H5FD_class_t MakeClass() {
  H5FD_class_t made = {};
  made.version = H5FD_CLASS_VERSION;
  made.value = 312;  // 256..511 are for drivers that stay within one program (H5FDdevelop.h).
  made.name = "h5mirror_edit";
  made.maxaddr = INT64_MAX;
  made.fc_degree = H5F_CLOSE_STRONG;
  made.fapl_size = sizeof(Info);
  made.fapl_get = InfoOf;
  made.open = OpenBytes;
  made.close = CloseBytes;
  made.cmp = CompareBytes;
  made.query = QueryFeatures;
  made.get_eoa = GetEoa;
  made.set_eoa = SetEoa;
  made.get_eof = GetEof;
  made.read = ReadBytes;
  made.write = WriteBytes;
  made.truncate = TruncateBytes;
  H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(map), std::end(map), made.fl_map);
  return made;
}

hid_t DriverId() {
  static const H5FD_class_t the_class = MakeClass();
  static const hid_t id = H5FDregister(&the_class);
  return id;
}

}  // namespace

absl::Status TakeDriverError() { return std::exchange(LastError(), absl::OkStatus()); }

absl::StatusOr<hdf5::Handle> OpenOver(EditFile& bytes, const std::string& name) {
  if (DriverId() < 0) return hdf5::ErrorOf("register the driver");
  H5M_ASSIGN_OR_RETURN(const hdf5::Handle fapl,
                       hdf5::Own(H5Pcreate(H5P_FILE_ACCESS), "make a property list"));
  struct stat st {};
  if (stat(name.c_str(), &st) != 0) return ErrnoToStatus(errno, StrCat("cannot open ", name));
  const Info info{&bytes, st.st_dev, st.st_ino};
  H5M_RETURN_IF_ERROR(hdf5::Check(H5Pset_driver(fapl.get(), DriverId(), &info), "set the driver"));
  H5Pset_fclose_degree(fapl.get(), H5F_CLOSE_STRONG);
  auto file =
      hdf5::Own(H5Fopen(name.c_str(), H5F_ACC_RDWR, fapl.get()), StrCat("cannot open ", name));
  if (file.ok()) return file;
  const absl::Status cause = TakeDriverError();
  return cause.ok() ? file.status() : cause;
}

}  // namespace h5mirror::edit
