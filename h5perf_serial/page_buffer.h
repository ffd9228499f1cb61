// Memory that data is moved from and to.
#ifndef H5MIRROR_H5PERF_SERIAL_PAGE_BUFFER_H_
#define H5MIRROR_H5PERF_SERIAL_PAGE_BUFFER_H_

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace h5mirror::perf {

// Pages of its own. What a copy between a buffer and the page cache takes depends on where in a
// page the buffer begins, up to 2.5 times on some processors (bench/README.md, tuning), and where
// malloc() puts it depends on all that was allocated before. Nor may a buffer move what HDF5
// allocates.
template <typename T>
struct PageAllocator {
  using value_type = T;

  T* allocate(size_t count) {
    void* const pages = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) throw std::bad_alloc();
    return static_cast<T*>(pages);
  }
  void deallocate(T* data, size_t count) { munmap(data, count * sizeof(T)); }
  bool operator==(const PageAllocator&) const = default;
};

// A transfer buffer.
using Bytes = std::vector<unsigned char, PageAllocator<unsigned char>>;

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_PAGE_BUFFER_H_
