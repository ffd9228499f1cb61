#include "base/random.h"

#include <sys/random.h>

#include <cstddef>
#include <random>

namespace h5mirror {

Bytes16 RandomBytes16() {
  Bytes16 bytes;
  // Up to 256 bytes come whole (getrandom(2)), unless a sandbox forbids the call.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::random_device device;
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(device());
  }
  return bytes;
}

}  // namespace h5mirror
