// A file descriptor that is closed with its owner.
#ifndef H5MIRROR_BASE_OWNED_FD_H_
#define H5MIRROR_BASE_OWNED_FD_H_

#include <unistd.h>

#include <utility>

namespace h5mirror {

class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  ~OwnedFd() { Reset(); }
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }

  // -1: there is none.
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_OWNED_FD_H_
