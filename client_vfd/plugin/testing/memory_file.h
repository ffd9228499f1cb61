// A local file in memory, with sec2's manners, as the driver below.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_TESTING_MEMORY_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_TESTING_MEMORY_FILE_H_

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "client_vfd/plugin/host/hdf5_headers.h"

namespace h5mirror::vfd {

struct MemoryFile {
  H5FD_t base{};
  std::string bytes;
  haddr_t eof = 0;  // as far as this process knows
  haddr_t eoa = 0;
  int reads = 0;
  int writes = 0;
  int writes_left = 1'000'000'000;
  int unlocks = 0;
  bool is_closed = false;
};

inline MemoryFile* MemoryOf(H5FD_t* file) { return reinterpret_cast<MemoryFile*>(file); }
inline const MemoryFile* MemoryOf(const H5FD_t* file) {
  return reinterpret_cast<const MemoryFile*>(file);
}

inline herr_t ReadMemory(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t addr, size_t size, void* buffer) {
  MemoryFile& memory = *MemoryOf(file);
  ++memory.reads;
  std::memset(buffer, 0, size);
  if (addr < memory.bytes.size()) memory.bytes.copy(static_cast<char*>(buffer), size, addr);
  return 0;
}

inline herr_t WriteMemory(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t addr, size_t size,
                          const void* buffer) {
  MemoryFile& memory = *MemoryOf(file);
  if (memory.writes_left == 0) return -1;
  --memory.writes_left;
  ++memory.writes;
  if (memory.bytes.size() < addr + size) memory.bytes.resize(addr + size, '\0');
  memory.bytes.replace(addr, size, static_cast<const char*>(buffer), size);
  memory.eof = std::max<haddr_t>(memory.eof, addr + size);
  return 0;
}

inline herr_t TruncateMemory(H5FD_t* file, hid_t, hbool_t) {
  MemoryOf(file)->bytes.resize(MemoryOf(file)->eoa, '\0');
  MemoryOf(file)->eof = MemoryOf(file)->eoa;
  return 0;
}

inline herr_t CloseMemory(H5FD_t* file) {
  MemoryOf(file)->is_closed = true;
  return 0;
}

inline herr_t UnlockMemory(H5FD_t* file) {
  ++MemoryOf(file)->unlocks;
  return 0;
}

inline const H5FD_class_t* MemoryClass() {
  static const H5FD_class_t made = [] {
    H5FD_class_t memory_class{};
    memory_class.read = ReadMemory;
    memory_class.write = WriteMemory;
    memory_class.truncate = TruncateMemory;
    memory_class.close = CloseMemory;
    memory_class.unlock = UnlockMemory;
    memory_class.get_eof = [](const H5FD_t* file, H5FD_mem_t) { return MemoryOf(file)->eof; };
    memory_class.get_eoa = [](const H5FD_t* file, H5FD_mem_t) { return MemoryOf(file)->eoa; };
    return memory_class;
  }();
  return &made;
}

// Fills in what HDF5 would.
inline void OpenMemory(std::string content, MemoryFile* memory) {
  memory->base.cls = MemoryClass();
  memory->bytes = std::move(content);
  memory->eof = memory->eoa = memory->bytes.size();
}

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_TESTING_MEMORY_FILE_H_
