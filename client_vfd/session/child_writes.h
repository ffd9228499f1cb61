// Whether a file was written since a cut was closed: by its program, or by a forked child, which
// tells its parent so.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_CHILD_WRITES_H_
#define H5MIRROR_CLIENT_VFD_SESSION_CHILD_WRITES_H_

#include <atomic>
#include <cstdint>

#include "base/hex.h"

namespace h5mirror::vfd {

// In a child: it wrote to the inherited file of this session. Thread-safe.
void NoteChildWrite(const Bytes16& session_id);

// In the program. Not thread-safe.
class WriteWatch {
 public:
  // Two sessions may count the same children; the program then sends more than it must.
  explicit WriteWatch(const Bytes16& session_id);

  void OnWrite() { is_at_cut_ = false; }
  void OnCut() { is_at_cut_ = true; }
  // True: a child has written since the last call.
  bool TakeChildWrites();
  // True: since a cut was closed no write has begun, and TakeChildWrites() has no child's write
  // left.
  bool is_at_cut() const { return is_at_cut_ && child_writes_.load() == seen_; }

 private:
  const std::atomic<uint32_t>& child_writes_;  // shared with children forked later
  uint32_t seen_;
  bool is_at_cut_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_CHILD_WRITES_H_
