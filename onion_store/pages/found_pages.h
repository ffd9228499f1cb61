// Pages that an apply found damaged: they do not match their checksums. Counts them, and keeps the
// first.
#ifndef H5MIRROR_ONION_STORE_PAGES_FOUND_PAGES_H_
#define H5MIRROR_ONION_STORE_PAGES_FOUND_PAGES_H_

#include <cstdint>

namespace h5mirror::store {

struct FoundPages {
  uint64_t count = 0;
  uint64_t first = 0;

  void Add(uint64_t page) {
    if (count++ == 0) first = page;
  }
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_FOUND_PAGES_H_
