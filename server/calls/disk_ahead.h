// Keeps a disk busy while the messages of a call are made and sent.
#ifndef H5MIRROR_SERVER_CALLS_DISK_AHEAD_H_
#define H5MIRROR_SERVER_CALLS_DISK_AHEAD_H_

#include <algorithm>
#include <cstdint>

#include "base/extent.h"

namespace h5mirror::server {

// For one range that is read in order. Thread-compatible.
class DiskAhead {
 public:
  // How far reads from the disk run ahead: the next message, and the one after it.
  static constexpr uint64_t kAheadBytes = 2 << 20;

  // Call before `length` bytes at `at` are read; the range ends at `end`. Does nothing for a range
  // of one message. `source` has StartReading().
  template <typename Source>
  void Keep(Source& source, uint64_t at, uint64_t length, uint64_t end) {
    const uint64_t wanted = std::min(end, at + std::max(length, kAheadBytes));
    const bool is_one_message = begun_ <= at && at + length >= end;
    if (is_one_message || wanted <= begun_) return;
    // Asks for half of kAheadBytes at a time, to make few calls.
    if (wanted < end && begun_ > at + kAheadBytes / 2) return;
    const uint64_t from = std::max(at, begun_);
    source.StartReading(Extent{from, wanted - from});
    begun_ = wanted;
  }

 private:
  uint64_t begun_ = 0;  // up to here
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_CALLS_DISK_AHEAD_H_
