// Bytes of a file that are in memory and not in the file yet: what the driver holds with
// metadata=memory. Pieces are ordered and never overlap; the newest bytes count.
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

// Room for as much as is put in one go, made when it is first used.
class Scratch {
 public:
  explicit Scratch(size_t size_bytes) : size_bytes_(size_bytes) {}

  size_t size_bytes() const { return size_bytes_; }
  // Where memory ends, std::bad_alloc is thrown.
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

  // Holds `bytes` at `offset`, over what was held there. Where memory ends, std::bad_alloc is
  // thrown, and a part of them may be held.
  void Buffer(uint64_t offset, std::string_view bytes);
  // Forgets all of `extent`.
  void Drop(Extent extent);
  // Forgets all bytes at or beyond `size_bytes`.
  void TruncateTo(uint64_t size_bytes);
  // Gives back what bytes take that were dropped; costs a copy of all that is held. Does nothing
  // where memory ends.
  void Compact();

  // Copies what is held of `extent` to its place in `out`, which is of the extent's length, and
  // leaves the rest of `out` alone.
  void CopyOver(Extent extent, char* out) const;
  bool Intersects(Extent extent) const;
  // All of `extent` is held.
  bool Covers(Extent extent) const;
  // The first bytes that are held at or after `from` and before `to`, and what follows them without
  // a gap, at most as much as fits into `scratch`, which is used where they lie in several pieces.
  // From `blank_from` on, where the file has nothing yet, small gaps are filled with zeros.
  std::optional<Run> NextRun(uint64_t from, uint64_t to, uint64_t blank_from,
                             Scratch& scratch) const;

  bool empty() const { return pieces_.empty(); }
  // One past the last byte; 0 when empty.
  uint64_t end() const;
  // About what it takes, with what the map itself needs. What is dropped goes on taking memory
  // until nothing is held any more, or a Compact().
  uint64_t memory_bytes() const;
  uint64_t live_bytes() const { return live_bytes_; }
  // That are taken by what was dropped.
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
