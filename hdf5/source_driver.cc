#include "hdf5/source_driver.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "base/superblock_image.h"
#include "hdf5/byte_driver.h"

namespace h5mirror::hdf5 {
namespace {

ReadKind KindOf(H5FD_mem_t type) {
  switch (type) {
    case H5FD_MEM_SUPER:
      return ReadKind::kSuperblock;
    case H5FD_MEM_OHDR:
      return ReadKind::kObjectHeader;
    case H5FD_MEM_LHEAP:
      return ReadKind::kLocalHeap;
    case H5FD_MEM_DRAW:
      return ReadKind::kRawData;
    default:
      return ReadKind::kOtherMetadata;
  }
}

// A writer that had the file open left its flags in the superblock.
void CloseSuperblock(haddr_t offset, uint64_t size_bytes, absl::Span<char> bytes) {
  const auto closed = ClosedSuperblock({bytes.data(), bytes.size()}, offset, size_bytes);
  if (closed) std::copy_n(closed->data(), std::min(closed->size(), bytes.size()), bytes.data());
}

struct OpenFile : ByteFile {
  static constexpr char kName[] = "h5mirror_source";
  // 256..511 are for drivers that stay within one program (H5FDdevelop.h).
  static constexpr H5FD_class_value_t kValue = 311;
  static constexpr unsigned long kFeatures = 0;
  struct Info {
    ByteSource* source;
    ReadObserver* observer;
  };

  static std::unique_ptr<OpenFile> Open(const Info& info, const char*, unsigned flags) {
    if ((flags & H5F_ACC_RDWR) != 0) return nullptr;
    auto file = std::make_unique<OpenFile>();
    file->opened = info;
    return file;
  }
  const void* content() const { return opened.source; }
  uint64_t size_bytes() const { return opened.source->size_bytes(); }
  absl::Status Read(H5FD_mem_t type, uint64_t offset, absl::Span<char> out) {
    H5M_RETURN_IF_ERROR(opened.source->Read(offset, out));
    if (type == H5FD_MEM_SUPER) CloseSuperblock(offset, size_bytes(), out);
    if (opened.observer != nullptr) opened.observer->OnRead(KindOf(type), offset, out);
    return absl::OkStatus();
  }

  Info opened{};
};

}  // namespace

absl::StatusOr<SourceFile> SourceFile::Open(ByteSource& source, ReadObserver* observer) {
  H5M_ASSIGN_OR_RETURN(const Handle access, ByteDriver<OpenFile>::AccessList({&source, observer}));
  H5Pset_sieve_buf_size(access.get(), 0);
  H5Pset_cache(access.get(), 0, 0, 0, 0);
  H5Pset_file_locking(access.get(), 0, 1);
  const std::string what = StrCat("open ", source.name());
  H5M_ASSIGN_OR_RETURN(Handle file, OpenThrough(access, source.name(), H5F_ACC_RDONLY, what));
  H5M_ASSIGN_OR_RETURN(const Handle fcpl, Own(H5Fget_create_plist(file.get()), what));
  hsize_t user_block = 0;
  H5M_RETURN_IF_ERROR(Check(H5Pget_userblock(fcpl.get(), &user_block), what));
  return SourceFile(std::move(file), user_block);
}

}  // namespace h5mirror::hdf5
