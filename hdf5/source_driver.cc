#include "hdf5/source_driver.h"

#include <H5FDdevelop.h>

#include <algorithm>
#include <cstring>

#include "base/status_macros.h"
#include "base/strings.h"
#include "base/superblock_image.h"

namespace h5mirror::hdf5 {
namespace {

struct Info {
  ByteSource* source;
  ReadObserver* observer;
};

// HDF5 sees the first member and takes the rest along.
struct OpenFile {
  H5FD_t pub;
  Info info;
  haddr_t eoa;
};

absl::Status& LastError() {
  static absl::Status error;
  return error;
}

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

OpenFile* Of(H5FD_t* file) { return reinterpret_cast<OpenFile*>(file); }
const OpenFile* Of(const H5FD_t* file) { return reinterpret_cast<const OpenFile*>(file); }

hid_t DriverId();

H5FD_t* OpenSource(const char*, unsigned flags, hid_t fapl, haddr_t) {
  const auto* info = static_cast<const Info*>(H5Pget_driver_info(fapl));
  if (info == nullptr || (flags & H5F_ACC_RDWR) != 0) return nullptr;
  return &(new OpenFile{{}, *info, 0})->pub;
}

herr_t CloseSource(H5FD_t* file) {
  delete Of(file);
  return 0;
}

int CompareSources(const H5FD_t* one, const H5FD_t* other) {
  const auto a = reinterpret_cast<uintptr_t>(Of(one)->info.source);
  const auto b = reinterpret_cast<uintptr_t>(Of(other)->info.source);
  return a < b ? -1 : a > b ? 1 : 0;
}

herr_t QueryFeatures(const H5FD_t*, unsigned long* flags) {
  *flags = 0;
  return 0;
}

haddr_t GetEoa(const H5FD_t* file, H5FD_mem_t) { return Of(file)->eoa; }

herr_t SetEoa(H5FD_t* file, H5FD_mem_t, haddr_t address) {
  Of(file)->eoa = address;
  return 0;
}

haddr_t GetEof(const H5FD_t* file, H5FD_mem_t) { return Of(file)->info.source->size_bytes(); }

// A writer that had the file open left its flags in the superblock.
void CloseSuperblock(haddr_t offset, uint64_t size_bytes, absl::Span<char> bytes) {
  const auto closed = ClosedSuperblock({bytes.data(), bytes.size()}, offset, size_bytes);
  if (closed) std::copy_n(closed->data(), std::min(closed->size(), bytes.size()), bytes.data());
}

herr_t ReadSource(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t offset, size_t size, void* buffer) {
  OpenFile& open = *Of(file);
  const absl::Span<char> out(static_cast<char*>(buffer), size);
  absl::Status read = open.info.source->Read(offset, out);
  if (!read.ok()) {
    LastError() = std::move(read);
    return -1;
  }
  if (type == H5FD_MEM_SUPER) CloseSuperblock(offset, open.info.source->size_bytes(), out);
  if (open.info.observer != nullptr) open.info.observer->OnRead(KindOf(type), offset, out);
  return 0;
}

herr_t RefuseWrite(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) { return -1; }

H5FD_class_t MakeClass() {
  H5FD_class_t made = {};
  made.version = H5FD_CLASS_VERSION;
  made.value = 311;  // 256..511 are for drivers that stay within one program (H5FDdevelop.h).
  made.name = "h5mirror_source";
  made.maxaddr = INT64_MAX;
  made.fc_degree = H5F_CLOSE_STRONG;
  made.fapl_size = sizeof(Info);
  made.open = OpenSource;
  made.close = CloseSource;
  made.cmp = CompareSources;
  made.query = QueryFeatures;
  made.get_eoa = GetEoa;
  made.set_eoa = SetEoa;
  made.get_eof = GetEof;
  made.read = ReadSource;
  made.write = RefuseWrite;
  return made;
}

hid_t DriverId() {
  static const H5FD_class_t the_class = MakeClass();
  static const hid_t id = H5FDregister(&the_class);
  return id;
}

}  // namespace

absl::Status TakeSourceError() { return std::exchange(LastError(), absl::OkStatus()); }

absl::StatusOr<SourceFile> SourceFile::Open(ByteSource& source, ReadObserver* observer) {
  if (DriverId() < 0) return ErrorOf("register the driver");
  H5M_ASSIGN_OR_RETURN(const Handle fapl, Own(H5Pcreate(H5P_FILE_ACCESS), "make a property list"));
  const Info info{&source, observer};
  H5M_RETURN_IF_ERROR(Check(H5Pset_driver(fapl.get(), DriverId(), &info), "set the driver"));
  H5Pset_fclose_degree(fapl.get(), H5F_CLOSE_STRONG);
  H5Pset_sieve_buf_size(fapl.get(), 0);
  H5Pset_cache(fapl.get(), 0, 0, 0, 0);
  H5Pset_file_locking(fapl.get(), 0, 1);
  const std::string what = StrCat("open ", source.name());
  auto file = Own(H5Fopen(source.name().c_str(), H5F_ACC_RDONLY, fapl.get()), what);
  if (!file.ok()) {
    const absl::Status cause = TakeSourceError();
    return cause.ok() ? file.status() : cause;
  }
  H5M_ASSIGN_OR_RETURN(const Handle fcpl, Own(H5Fget_create_plist(file->get()), what));
  hsize_t user_block = 0;
  H5M_RETURN_IF_ERROR(Check(H5Pget_userblock(fcpl.get(), &user_block), what));
  return SourceFile(*std::move(file), user_block);
}

}  // namespace h5mirror::hdf5
