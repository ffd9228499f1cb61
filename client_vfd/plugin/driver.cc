#include "client_vfd/plugin/host/driver_class.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "client_vfd/plugin/driver_api.h"
#include "client_vfd/plugin/host/h5_error.h"
#include "client_vfd/plugin/host/session_loader.h"
#include "client_vfd/plugin/modes/driver_file.h"
#include "client_vfd/plugin/modes/linked_open.h"
#include "client_vfd/plugin/open/member_opens.h"
#include "client_vfd/plugin/open/open_file.h"

namespace h5mirror::vfd {
namespace {

// Free for drivers that The HDF Group has not registered: 512..65535 (H5FDpublic.h).
constexpr H5FD_class_value_t kDriverValue = 7447;
constexpr haddr_t kMaxAddress = (haddr_t{1} << 63) - 1;

// HDF5 fills and reads `base`, so it comes first and the struct has no virtual functions. For a
// file of several ranks, H5Fset_mpi_atomicity reads the MPI_File right behind `base` (H5FDmpio.c).
struct OpenFile {
  H5FD_t base{};
  void* mpi_file = nullptr;
  std::unique_ptr<DriverFile> file;
  Touched touched;
};

DriverFile& Of(H5FD_t* file) {
  auto& open = *reinterpret_cast<OpenFile*>(file);
  open.touched.is_touched = true;
  return *open.file;
}
const DriverFile& Of(const H5FD_t* file) {
  const auto& open = *reinterpret_cast<const OpenFile*>(file);
  open.touched.is_touched = true;
  return *open.file;
}
// For what HDF5 asks within its open.
const DriverFile& Untouched(const H5FD_t* file) {
  return *reinterpret_cast<const OpenFile*>(file)->file;
}

bool IsParallel(const H5FD_t* file) {
  return reinterpret_cast<const OpenFile*>(file)->file->Parallel() != nullptr;
}
// The class of files of several ranks.
const H5FD_class_t& ParallelClass();

// Runs `body` at the C border: whatever is thrown becomes -1.
template <typename Body>
herr_t Guard(Body body) {
  try {
    return body();
  } catch (...) {
    return -1;
  }
}

// Null: the file is not of several ranks. MPI_File is a pointer in all MPI libraries that Ranks
// takes.
void* MpiFileOf(DriverFile& file, hid_t fapl) {
  void* handle = nullptr;
  if (file.Parallel() == nullptr || file.under().Handle(fapl, &handle) < 0) return nullptr;
  return handle != nullptr ? *static_cast<void**>(handle) : nullptr;
}

H5FD_t* Open(const char* name, unsigned flags, hid_t fapl, haddr_t maxaddr) {
  const void* caller = __builtin_return_address(0);
  try {
    HostLibrary& host = FindHost(caller);
    try {
      auto made = std::make_unique<OpenFile>();
      made->file = OpenFileFor(host, name, flags, fapl, maxaddr);
      if (made->file == nullptr) return nullptr;
      made->mpi_file = MpiFileOf(*made->file, fapl);
      if (MirroredFile* mirror = made->file->Mirror()) {
        JoinMembers(host, fapl, *mirror, made->touched);
      }
      return &made.release()->base;
    } catch (const std::exception& error) {
      PushOpenError(host, std::string("h5mirror: ") + error.what());
    }
  } catch (...) {
  }
  return nullptr;
}

herr_t Close(H5FD_t* file) {
  return Guard([&] {
    ForgetOpen();
    const std::unique_ptr<OpenFile> owned(reinterpret_cast<OpenFile*>(file));
    return owned->file->Close();
  });
}

int CompareFiles(const H5FD_t* a, const H5FD_t* b) {
  return Compare(Of(a).identity(), Of(b).identity());
}

// HDF5 asks right after it has set the file's class (H5FD_open). A file of several ranks gets the
// class with their functions: HDF5 would use these for serial files too, and they are slower there.
void SetParallelClass(const H5FD_t* file) {
  H5FD_t* const below = Untouched(file).under().HostFileBelow();
  const bool has_all = below != nullptr && below->cls->read_vector != nullptr &&
                       below->cls->write_vector != nullptr &&
                       below->cls->read_selection != nullptr &&
                       below->cls->write_selection != nullptr;
  if (has_all) const_cast<H5FD_t*>(file)->cls = &ParallelClass();
}

herr_t Query(const H5FD_t* file, unsigned long* flags) {
  if (flags == nullptr) return 0;
  *flags = kSec2Features;
  if (file == nullptr) return 0;
  if (IsParallel(file)) SetParallelClass(file);
  return Untouched(file).under().Query(flags);
}

// The driver information for the access property lists of the files that this one leads to.
void* GetLinkInfo(H5FD_t* file) { return MakeLinkInfo(Of(file).LinkRoot()); }

herr_t FreeLinkInfoCallback(void* info) {
  FreeLinkInfo(info);
  return 0;
}

haddr_t GetEoa(const H5FD_t* file, H5FD_mem_t type) { return Of(file).under().Eoa(type); }

herr_t SetEoa(H5FD_t* file, H5FD_mem_t type, haddr_t address) {
  return Of(file).under().SetEoa(type, address);
}

haddr_t GetEof(const H5FD_t* file, H5FD_mem_t type) { return Of(file).Eof(type); }

herr_t GetHandle(H5FD_t* file, hid_t fapl, void** handle) {
  if (handle == nullptr) return -1;
  const bool filled = FillApi(Of(file), fapl);
  UnderFile& under = Of(file).under();
  if (under.HasHandle()) return under.Handle(fapl, handle);
  if (!filled) return -1;
  *handle = nullptr;  // It has no descriptor, and nobody asked for one.
  return 0;
}

herr_t Read(H5FD_t* file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size, void* buffer) {
  return Guard([&] { return Of(file).Read(type, dxpl, address, size, buffer); });
}

herr_t Write(H5FD_t* file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
             const void* buffer) {
  return Guard([&] { return Of(file).Write(type, dxpl, address, size, buffer); });
}

ParallelBytes& ParallelOf(H5FD_t* file) { return *Of(file).Parallel(); }

herr_t ReadVector(H5FD_t* file, hid_t dxpl, uint32_t count, H5FD_mem_t* types, haddr_t* addresses,
                  size_t* sizes, void** buffers) {
  return Guard([&] {
    return ParallelOf(file).ReadVector({dxpl, count, types, addresses, sizes}, buffers);
  });
}

herr_t WriteVector(H5FD_t* file, hid_t dxpl, uint32_t count, H5FD_mem_t* types, haddr_t* addresses,
                   size_t* sizes, const void** buffers) {
  return Guard([&] {
    return ParallelOf(file).WriteVector({dxpl, count, types, addresses, sizes}, buffers);
  });
}

herr_t ReadSelection(H5FD_t* file, H5FD_mem_t type, hid_t dxpl, size_t count, hid_t* memory_spaces,
                     hid_t* file_spaces, haddr_t* offsets, size_t* element_sizes, void** buffers) {
  return Guard([&] {
    return ParallelOf(file).ReadSelection(
        {type, dxpl, count, memory_spaces, file_spaces, offsets, element_sizes}, buffers);
  });
}

herr_t WriteSelection(H5FD_t* file, H5FD_mem_t type, hid_t dxpl, size_t count, hid_t* memory_spaces,
                      hid_t* file_spaces, haddr_t* offsets, size_t* element_sizes,
                      const void** buffers) {
  return Guard([&] {
    return ParallelOf(file).WriteSelection(
        {type, dxpl, count, memory_spaces, file_spaces, offsets, element_sizes}, buffers);
  });
}

herr_t Flush(H5FD_t* file, hid_t dxpl, hbool_t closing) {
  return Guard([&] { return Of(file).Flush(dxpl, closing); });
}

herr_t Truncate(H5FD_t* file, hid_t dxpl, hbool_t closing) {
  return Guard([&] { return Of(file).Truncate(dxpl, closing); });
}

herr_t Delete(const char* name, hid_t fapl) {
  const void* caller = __builtin_return_address(0);
  return Guard([&] {
    const HostLibrary& host = FindHost(caller);
    if (const Problem problem = ProblemOfDeleting(host, name, fapl)) {
      PushOpenErrno(host, name, EPERM, *problem);
      return -1;
    }
    return std::remove(name) < 0 ? -1 : 0;
  });
}

herr_t Control(H5FD_t* file, uint64_t code, uint64_t flags, const void* input, void** output) {
  if (file == nullptr) return UnderFile::RefuseControl(flags);
  return Of(file).under().Control(code, flags, input, output);
}

// The host closes down (H5close, or its atexit); it may come back and ask for the class again.
herr_t Terminate() {
  if (const H5mSessionApi* session = LoadedSession()) session->drain();
  return 0;
}

const H5FD_class_t& ParallelClass() {
  static const H5FD_class_t cls = [] {
    H5FD_class_t made = MakeDriverClass();
    made.read_vector = ReadVector;
    made.write_vector = WriteVector;
    made.read_selection = ReadSelection;
    made.write_selection = WriteSelection;
    return made;
  }();
  return cls;
}

}  // namespace

H5FD_class_t MakeDriverClass() {
  H5FD_class_t made{};
  made.version = H5FD_CLASS_VERSION;
  made.value = kDriverValue;
  made.name = "h5mirror";
  made.maxaddr = kMaxAddress;
  made.fc_degree = H5F_CLOSE_WEAK;
  made.terminate = Terminate;
  made.fapl_size = kLinkInfoBytes;
  made.fapl_get = GetLinkInfo;
  made.fapl_copy = CopyLinkInfo;
  made.fapl_free = FreeLinkInfoCallback;
  made.open = Open;
  made.close = Close;
  made.cmp = CompareFiles;
  made.query = Query;
  made.get_eoa = GetEoa;
  made.set_eoa = SetEoa;
  made.get_eof = GetEof;
  made.get_handle = GetHandle;
  made.read = Read;
  made.write = Write;
  made.flush = Flush;
  made.truncate = Truncate;
  // No `lock`: with one, the library sets and checks the superblock's status flags at open.
  made.del = Delete;
  made.ctl = Control;
  const H5FD_mem_t map[H5FD_MEM_NTYPES] = H5FD_FLMAP_DICHOTOMY;
  std::memcpy(made.fl_map, map, sizeof map);
  return made;
}

}  // namespace h5mirror::vfd
