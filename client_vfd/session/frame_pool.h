// The buffers that the sender reads the local file into. They are lent to gRPC and reused. Their
// number bounds the memory in flight.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_FRAME_POOL_H_
#define H5MIRROR_CLIENT_VFD_SESSION_FRAME_POOL_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/slice.h"

namespace h5mirror::vfd {

// Thread-safe; must outlive every slice that it lent.
class FramePool {
 public:
  // `on_return` is called, from any thread, when a buffer comes back after Take() found none.
  FramePool(size_t buffer_bytes, size_t buffers_max, std::function<void()> on_return);
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  // A buffer of `buffer_bytes`; null when all are lent.
  char* Take();
  void Return(char* buffer);
  // A slice over the first `length` bytes; gRPC's release of it returns the buffer.
  grpc::Slice Lend(char* buffer, size_t length);

 private:
  struct Loan {
    FramePool* pool;
    char* buffer;
  };

  const size_t buffer_bytes_;
  const size_t buffers_max_;
  const std::function<void()> on_return_;
  absl::Mutex mutex_;
  std::vector<char*> free_ ABSL_GUARDED_BY(mutex_);
  size_t made_ ABSL_GUARDED_BY(mutex_) = 0;
  bool wanted_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_FRAME_POOL_H_
