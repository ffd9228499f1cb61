// The bytes of an object that is put at a limited pace, until the server stops.
#ifndef H5MIRROR_ARCHIVE_WATCHED_SOURCE_H_
#define H5MIRROR_ARCHIVE_WATCHED_SOURCE_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "archive/pace.h"
#include "base/status_macros.h"
#include "onion_store/object_store.h"

namespace h5mirror::archive {

// Not thread-safe. The arguments of the constructor must outlive it. Reads wait for their turn, and
// fail with kUnavailable once `stopped` is set.
class WatchedSource final : public store::ObjectSource {
 public:
  // `free_bytes`: the first bytes read that need no turn. A store may read all of them for a
  // checksum before it sends any. `pace` may be null. `on_read` is called when a read begins (true)
  // and when it ends (false).
  WatchedSource(store::ObjectSource& inner, Pace* pace, uint64_t free_bytes,
                const std::atomic<bool>& stopped, std::function<void(bool is_begin)> on_read)
      : inner_(inner),
        pace_(pace),
        free_bytes_(free_bytes),
        stopped_(stopped),
        on_read_(std::move(on_read)) {}

  uint64_t size_bytes() const override { return inner_.size_bytes(); }
  absl::Status Read(uint64_t offset, absl::Span<char> out) override {
    on_read_(true);
    const absl::Cleanup ended = [this] { on_read_(false); };
    if (stopped_) return absl::UnavailableError("the server stops");
    const uint64_t free = std::min<uint64_t>(free_bytes_, out.size());
    free_bytes_ -= free;
    if (pace_ != nullptr) H5M_RETURN_IF_ERROR(pace_->Take(out.size() - free, stopped_));
    return inner_.Read(offset, out);
  }

 private:
  store::ObjectSource& inner_;
  Pace* const pace_;
  uint64_t free_bytes_;
  const std::atomic<bool>& stopped_;
  const std::function<void(bool)> on_read_;
};

}  // namespace h5mirror::archive

#endif  // H5MIRROR_ARCHIVE_WATCHED_SOURCE_H_
