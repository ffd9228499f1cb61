// Buffered bytes: in memory and not in the file yet, with metadata=memory. Pieces are ordered and
// never overlap; the newest bytes count.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFERED_BYTES_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFERED_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "base/extent.h"
#include "client_vfd/plugin/metadata_buffer/buffer_arena.h"

namespace h5mirror::vfd {

// A buffer for one put, allocated at its first use.
class Scratch {
 public:
  explicit Scratch(size_t size_bytes) : size_bytes_(size_bytes) {}

  size_t size_bytes() const { return size_bytes_; }
  // Throws std::bad_alloc if there is no more memory.
  char* data() {
    if (!data_) data_ = std::make_unique_for_overwrite<char[]>(size_bytes_);
    return data_.get();
  }

 private:
  size_t size_bytes_;
  std::unique_ptr<char[]> data_;
};

// Not thread-safe. Every operation but Compact() costs O(log n + pieces touched).
class BufferedBytes {
 public:
  // Bytes that follow each other; they live until the next call that changes anything.
  struct Run {
    uint64_t offset = 0;
    std::string_view bytes;

    uint64_t end() const { return offset + bytes.size(); }
  };

  // Buffers `bytes` at `offset`, over former bytes there. Throws std::bad_alloc if there is no more
  // memory; a part of `bytes` may be buffered then.
  void Buffer(uint64_t offset, std::string_view bytes);
  // Forgets all of `extent`.
  void Drop(Extent extent);
  // Forgets all bytes at or beyond `size_bytes`.
  void TruncateTo(uint64_t size_bytes);
  // Gives back the memory of dropped bytes. Costs a copy of all buffered bytes; does nothing if
  // there is no memory for that.
  void Compact();

  // Copies the buffered bytes of `extent` to their places in `out`, which has the extent's length.
  // Leaves the rest of `out` alone.
  void CopyOver(Extent extent, char* out) const;
  bool Intersects(Extent extent) const;
  // True: all of `extent` is buffered.
  bool Covers(Extent extent) const;
  // The first buffered bytes at or after `from` and before `to`, up to the next gap, at most as
  // many as fit into `scratch`. Bytes of several pieces are put together in `scratch`. From
  // `blank_from` on, where the file has no bytes yet, small gaps are filled with zeros.
  std::optional<Run> NextRun(uint64_t from, uint64_t to, uint64_t blank_from,
                             Scratch& scratch) const;

  bool empty() const { return pieces_.empty(); }
  // One past the last byte; 0 when empty.
  uint64_t end() const;
  // About how much memory this takes, the map included. Dropped bytes take memory until no byte is
  // buffered, or until Compact().
  uint64_t memory_bytes() const;
  uint64_t live_bytes() const { return live_bytes_; }
  // The memory of dropped bytes.
  uint64_t dead_bytes() const { return arena_.taken_bytes() - live_bytes_; }

 private:
  struct Piece {
    char* data = nullptr;  // in the arena
    size_t size = 0;       // never 0

    std::string_view bytes() const { return {data, size}; }
  };
  using Pieces = std::map<uint64_t, Piece>;  // by offset

  static uint64_t EndOf(Pieces::const_iterator at) { return at->first + at->second.size; }
  // The piece that holds `offset`, or the first one after it.
  Pieces::const_iterator At(uint64_t offset) const;

  Pieces pieces_;
  uint64_t live_bytes_ = 0;  // of all pieces
  BufferArena arena_;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFERED_BYTES_H_
