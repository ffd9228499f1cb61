// Little-endian integers in byte strings: the store's records.
#ifndef H5MIRROR_ONION_STORE_DISK_CODING_H_
#define H5MIRROR_ONION_STORE_DISK_CODING_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/rounding.h"

namespace h5mirror::store {

static_assert(std::endian::native == std::endian::little, "the codec copies integers as they are");

template <typename T>
void PutInt(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}
template <typename T>
void PutIntAt(std::string* out, size_t at, T value) {
  std::memcpy(out->data() + at, &value, sizeof(value));
}
// The caller checks before that enough bytes are there.
template <typename T>
T GetInt(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

inline bool IsZero(std::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_DISK_CODING_H_
