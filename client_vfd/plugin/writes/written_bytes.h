// The bytes of a file in mode=remote that the program has written, and that are in its spool. All
// other bytes are the server's. Byte-exact: holds no byte beside a write.
//
// Not thread-safe. Each call costs O(log n) and the extents that it merges.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_WRITTEN_BYTES_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_WRITTEN_BYTES_H_

#include <cstdint>
#include <map>

namespace h5mirror::vfd {

class WrittenBytes {
 public:
  // The bytes [offset, end).
  struct Run {
    uint64_t offset = 0;
    uint64_t end = 0;
    bool is_written = false;
  };

  void Add(uint64_t offset, uint64_t length);
  // Forgets all bytes at or beyond `size_bytes`.
  void TruncateTo(uint64_t size_bytes);
  // The longest run from `offset` on that is all written or all unwritten; at most to `end`, which
  // lies beyond `offset`.
  Run RunFrom(uint64_t offset, uint64_t end) const;
  bool empty() const { return runs_.empty(); }

 private:
  std::map<uint64_t, uint64_t> runs_;  // offset -> end; disjoint, and none touches the next
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_WRITES_WRITTEN_BYTES_H_
