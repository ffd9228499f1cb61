// A buffer that is not cleared before it is filled.
#ifndef H5MIRROR_ONION_STORE_DISK_RAW_BYTES_H_
#define H5MIRROR_ONION_STORE_DISK_RAW_BYTES_H_

#include <cstddef>
#include <memory>

#include "absl/types/span.h"

namespace h5mirror::store {

class RawBytes {
 public:
  // At least `size` bytes of unspecified content. A smaller size frees memory only if it frees
  // much.
  absl::Span<char> Get(size_t size) {
    if (size > size_ || size < size_ / 4) {
      bytes_.reset();
      bytes_.reset(new char[size]);
      size_ = size;
    }
    return {bytes_.get(), size};
  }
  size_t size() const { return size_; }

 private:
  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_DISK_RAW_BYTES_H_
