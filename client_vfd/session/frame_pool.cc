#include "client_vfd/session/frame_pool.h"

#include <cstdlib>
#include <utility>

namespace h5mirror::vfd {

FramePool::FramePool(size_t buffer_bytes, size_t buffers_max, std::function<void()> on_return)
    : buffer_bytes_(buffer_bytes), buffers_max_(buffers_max), on_return_(std::move(on_return)) {}

char* FramePool::Take() {
  absl::MutexLock lock(&mutex_);
  if (!free_.empty()) {
    char* buffer = free_.back();
    free_.pop_back();
    return buffer;
  }
  char* buffer = made_ < buffers_max_ ? static_cast<char*>(std::malloc(buffer_bytes_)) : nullptr;
  if (buffer == nullptr) {
    wanted_ = true;
  } else {
    ++made_;
  }
  return buffer;
}

void FramePool::Return(char* buffer) {
  bool wanted = false;
  {
    absl::MutexLock lock(&mutex_);
    free_.push_back(buffer);
    wanted = std::exchange(wanted_, false);
  }
  if (wanted) on_return_();
}

grpc::Slice FramePool::Lend(char* buffer, size_t length) {
  const auto release = [](void* data) {
    const auto* loan = static_cast<Loan*>(data);
    loan->pool->Return(loan->buffer);
    delete loan;
  };
  return grpc::Slice(buffer, length, release, new Loan{this, buffer});
}

}  // namespace h5mirror::vfd
