#include "base/crc32c.h"

#include <algorithm>
#include <cstddef>

#include <isa-l/crc.h>

namespace h5mirror {
namespace {

constexpr size_t kChunkBytesMax = size_t{1} << 30;  // ISA-L counts in int

}  // namespace

uint32_t Crc32cExtend(uint32_t crc, std::string_view data) {
  // ISA-L leaves the inversions at both ends to the caller. It declares its input mutable, but only
  // reads it.
  uint32_t state = ~crc;
  while (!data.empty()) {
    const size_t size = std::min(data.size(), kChunkBytesMax);
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
    state = crc32_iscsi(bytes, static_cast<int>(size), state);
    data.remove_prefix(size);
  }
  return ~state;
}

}  // namespace h5mirror
