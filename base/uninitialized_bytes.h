// A buffer that is not zeroed before it is filled.
#ifndef H5MIRROR_BASE_UNINITIALIZED_BYTES_H_
#define H5MIRROR_BASE_UNINITIALIZED_BYTES_H_

#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace h5mirror {

// As std::allocator, but does not initialize elements that are given no value.
template <typename T>
struct NoInitAllocator : std::allocator<T> {
  NoInitAllocator() = default;
  template <typename U>
  NoInitAllocator(const NoInitAllocator<U>&) noexcept {}
  template <typename U>
  struct rebind {
    using other = NoInitAllocator<U>;
  };
  template <typename U>
  void construct(U* at) noexcept(std::is_nothrow_default_constructible_v<U>) {
    ::new (static_cast<void*>(at)) U;
  }
  template <typename U, typename... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }
};

// resize() does not initialize the bytes that it adds: write them before you read them.
using UninitializedBytes = std::vector<char, NoInitAllocator<char>>;

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_UNINITIALIZED_BYTES_H_
