// A local file in memory, with sec2's manners, below the driver.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_TESTING_MEMORY_FILE_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_TESTING_MEMORY_FILE_H_

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "client_vfd/plugin/modes/under_file.h"

namespace h5mirror::vfd {

struct MemoryFile final : public UnderFile {
  explicit MemoryFile(std::string content = "")
      : UnderFile(kSec2Features), bytes(std::move(content)), eof(bytes.size()), eoa(eof) {}

  herr_t Read(H5FD_mem_t, hid_t, haddr_t addr, size_t size, void* buffer) override {
    ++reads;
    std::memset(buffer, 0, size);
    if (addr < bytes.size()) bytes.copy(static_cast<char*>(buffer), size, addr);
    return 0;
  }
  herr_t Write(H5FD_mem_t, hid_t, haddr_t addr, size_t size, const void* buffer) override {
    if (writes_left == 0) return -1;
    --writes_left;
    ++writes;
    if (bytes.size() < addr + size) bytes.resize(addr + size, '\0');
    bytes.replace(addr, size, static_cast<const char*>(buffer), size);
    eof = std::max<haddr_t>(eof, addr + size);
    return 0;
  }
  herr_t Truncate(hid_t, hbool_t) override {
    bytes.resize(eoa, '\0');
    eof = eoa;
    return 0;
  }
  haddr_t Eof(H5FD_mem_t) const override { return eof; }
  haddr_t Eoa(H5FD_mem_t) const override { return eoa; }
  void Unlock() override { ++unlocks; }

  std::string bytes;
  haddr_t eof;  // as far as this process knows
  haddr_t eoa;
  int reads = 0;
  int writes = 0;
  int writes_left = 1'000'000'000;
  int unlocks = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_TESTING_MEMORY_FILE_H_
