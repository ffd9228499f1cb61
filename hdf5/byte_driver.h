// A file driver of HDF5 inside the process, from a plain class that holds a file's bytes.
//
// HDF5 knows an open file as an H5FD_t and calls it through a table of C functions. The class
// writes only what is its own; ByteDriver<File> makes the table and registers it once:
//
//   HDF5 --H5FD_class_t--> ByteDriver<File> --> File, which derives from ByteFile (an H5FD_t)
//
//   File must have   kName, kValue, kFeatures   of its H5FD_class_t
//                    Info                       what an open takes along in its property list; HDF5
//                                               copies it as bytes
//                    Open(info, name, flags)    static; null: the open fails
//                    content()                  files of equal content are one file to HDF5
//                    size_bytes()
//                    Read(type, offset, out)    fills `out`, or fails
//   it may have      Write(offset, bytes) and Truncate(size_bytes); else it is read-only
//                    info()                     for the files that its links lead to; without it
//                                               they do not open
//
// A call that fails keeps its absl::Status for TakeDriverError(). Not thread-safe, as HDF5 is not.
#ifndef H5MIRROR_HDF5_BYTE_DRIVER_H_
#define H5MIRROR_HDF5_BYTE_DRIVER_H_

#include <hdf5.h>
// After hdf5.h.
#include <H5FDdevelop.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "base/status_macros.h"
#include "hdf5/handle.h"

namespace h5mirror::hdf5 {

// HDF5's handle of an open file. It owns the file, and frees it by ByteDriver's Close().
struct ByteFile : H5FD_t {
  ByteFile() : H5FD_t{} {}
  haddr_t eoa = 0;  // the end of the addresses that HDF5 has given out
};

// The error with which a driver of ours last failed a call, since the last TakeDriverError(). It is
// better than the error that HDF5 makes of it. OK: there was none.
absl::Status TakeDriverError();

// Keeps an error for TakeDriverError(); the result of a callback.
herr_t Noted(absl::Status status);

// Opens `name` with the driver of `access`. Errors: the driver's own; else ErrorOf(what).
absl::StatusOr<Handle> OpenThrough(const Handle& access, const std::string& name, unsigned flags,
                                   std::string_view what);

template <typename File>
class ByteDriver {
 public:
  // A property list for opens with the driver, which close strongly.
  static absl::StatusOr<Handle> AccessList(const typename File::Info& info) {
    static const H5FD_class_t driver_class = MakeClass();
    static const hid_t id = H5FDregister(&driver_class);
    if (id < 0) return ErrorOf("register the driver");
    H5M_ASSIGN_OR_RETURN(Handle access, Own(H5Pcreate(H5P_FILE_ACCESS), "make a property list"));
    H5M_RETURN_IF_ERROR(Check(H5Pset_driver(access.get(), id, &info), "set the driver"));
    H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
    return access;
  }

 private:
  static constexpr bool kWrites = requires(File & file) { file.Write(0, std::string_view()); };

  static File& Of(H5FD_t* file) { return *static_cast<File*>(file); }
  static const File& Of(const H5FD_t* file) { return *static_cast<const File*>(file); }

  static H5FD_t* Open(const char* name, unsigned flags, hid_t access, haddr_t) {
    const auto* info = static_cast<const typename File::Info*>(H5Pget_driver_info(access));
    return info != nullptr ? File::Open(*info, name, flags).release() : nullptr;
  }
  static herr_t Close(H5FD_t* file) {
    delete &Of(file);
    return 0;
  }
  static int Compare(const H5FD_t* one, const H5FD_t* other) {
    const auto a = reinterpret_cast<uintptr_t>(Of(one).content());
    const auto b = reinterpret_cast<uintptr_t>(Of(other).content());
    return a < b ? -1 : a > b ? 1 : 0;
  }
  static herr_t Query(const H5FD_t*, unsigned long* flags) {
    *flags = File::kFeatures;
    return 0;
  }
  static haddr_t GetEoa(const H5FD_t* file, H5FD_mem_t) { return Of(file).eoa; }
  static herr_t SetEoa(H5FD_t* file, H5FD_mem_t, haddr_t address) {
    Of(file).eoa = address;
    return 0;
  }
  static haddr_t GetEof(const H5FD_t* file, H5FD_mem_t) { return Of(file).size_bytes(); }
  static herr_t Read(H5FD_t* file, H5FD_mem_t type, hid_t, haddr_t offset, size_t size,
                     void* buffer) {
    return Noted(Of(file).Read(type, offset, {static_cast<char*>(buffer), size}));
  }
  static herr_t Write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t size,
                      const void* buffer) {
    if constexpr (!kWrites)
      return -1;
    else
      return Noted(Of(file).Write(offset, {static_cast<const char*>(buffer), size}));
  }
  static herr_t Truncate(H5FD_t* file, hid_t, hbool_t) {
    File& open = Of(file);
    return open.eoa == open.size_bytes() ? 0 : Noted(open.Truncate(open.eoa));
  }
  // HDF5 frees it.
  static void* CopyInfo(H5FD_t* file) {
    void* const copy = H5allocate_memory(sizeof(typename File::Info), false);
    if (copy != nullptr) *static_cast<typename File::Info*>(copy) = Of(file).info();
    return copy;
  }

  // Without `lock`: HDF5 then marks no file as open, and no cut has the mark in it.
  static H5FD_class_t MakeClass() {
    H5FD_class_t made{};
    made.version = H5FD_CLASS_VERSION;
    made.value = File::kValue;
    made.name = File::kName;
    made.maxaddr = INT64_MAX;
    made.fc_degree = H5F_CLOSE_STRONG;
    made.fapl_size = sizeof(typename File::Info);
    if constexpr (requires(File & file) { file.info(); }) made.fapl_get = CopyInfo;
    made.open = Open;
    made.close = Close;
    made.cmp = Compare;
    made.query = Query;
    made.get_eoa = GetEoa;
    made.set_eoa = SetEoa;
    made.get_eof = GetEof;
    made.read = Read;
    made.write = Write;
    if constexpr (kWrites) {
      made.truncate = Truncate;
      const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
      std::copy(std::begin(map), std::end(map), made.fl_map);
    }
    return made;
  }
};

}  // namespace h5mirror::hdf5

#endif  // H5MIRROR_HDF5_BYTE_DRIVER_H_
