#include "h5edit/edit_driver.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "h5edit/beside.h"
#include "hdf5/byte_driver.h"

namespace h5mirror::edit {
namespace {

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

// The lock of the file is the EditFile's.
struct OpenFile : hdf5::ByteFile {
  static constexpr char kName[] = "h5mirror_edit";
  // 256..511 are for drivers that stay within one program (H5FDdevelop.h).
  static constexpr H5FD_class_value_t kValue = 312;
  static constexpr unsigned long kFeatures =
      H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
      H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  // Which file the EditFile is of: HDF5 opens those that links and virtual datasets lead to with
  // the same properties.
  struct Info {
    EditFile* bytes;
    dev_t device;
    ino_t inode;
  };

  static std::unique_ptr<OpenFile> Open(const Info& info, const char* name, unsigned flags);
  const void* content() const { return bytes; }
  const Info& info() const { return edited; }
  uint64_t size_bytes() const { return bytes->size_bytes(); }
  absl::Status Read(H5FD_mem_t, uint64_t offset, absl::Span<char> out) {
    return bytes->Read(offset, out);
  }
  // Fails for another file, whatever HDF5 has opened it for.
  absl::Status Write(uint64_t offset, std::string_view written) {
    if (own == nullptr) return bytes->Write(offset, written);
    return absl::FailedPreconditionError(
        StrCat(name, " is another file than the one that is edited: edit that file"));
  }
  absl::Status Truncate(uint64_t size) {
    return own == nullptr ? bytes->Truncate(size) : absl::OkStatus();
  }

  Info edited{};  // of the file that is edited, whichever this one is
  EditFile* bytes = nullptr;
  std::unique_ptr<EditFile> own;  // of another file, which is only read
  std::string name;
};

std::unique_ptr<OpenFile> OpenFile::Open(const Info& info, const char* name, unsigned) {
  struct stat st {};
  if (stat(name, &st) != 0) return nullptr;
  auto file = std::make_unique<OpenFile>();
  file->edited = info;
  file->bytes = info.bytes;
  file->name = name;
  if (st.st_dev != info.device || st.st_ino != info.inode) {
    auto other = OpenOther(name);
    if (!other.ok()) return nullptr;
    file->own = *std::move(other);
    file->bytes = file->own.get();
  }
  return file;
}

}  // namespace

absl::StatusOr<hdf5::Handle> OpenOver(EditFile& bytes, const std::string& name) {
  struct stat st {};
  if (stat(name.c_str(), &st) != 0) return ErrnoToStatus(errno, StrCat("cannot open ", name));
  H5M_ASSIGN_OR_RETURN(const hdf5::Handle access,
                       hdf5::ByteDriver<OpenFile>::AccessList({&bytes, st.st_dev, st.st_ino}));
  return hdf5::OpenThrough(access, name, H5F_ACC_RDWR, StrCat("cannot open ", name));
}

}  // namespace h5mirror::edit
