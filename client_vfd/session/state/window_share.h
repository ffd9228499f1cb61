// One session's share of the copies that the sessions with a server hold together.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_WINDOW_SHARE_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_WINDOW_SHARE_H_

#include <atomic>
#include <cstdint>
#include <utility>

namespace h5mirror::vfd {

// Not thread-safe, but for what it shares with others.
class WindowShare {
 public:
  // `used_bytes`: of all sessions. It must outlive the share.
  explicit WindowShare(std::atomic<int64_t>& used_bytes) : used_bytes_(used_bytes) {}

  // The session holds `bytes` now.
  void Hold(uint64_t bytes) {
    const auto now = static_cast<int64_t>(bytes);
    used_bytes_ += now - std::exchange(bytes_, now);
  }
  // True: with `more` bytes all sessions together stay within `max`.
  bool HasRoom(uint64_t more, uint64_t max) const {
    return used_bytes_.load() + static_cast<int64_t>(more) <= static_cast<int64_t>(max);
  }

 private:
  std::atomic<int64_t>& used_bytes_;
  int64_t bytes_ = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_WINDOW_SHARE_H_
