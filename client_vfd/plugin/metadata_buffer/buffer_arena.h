// Memory for buffered bytes, apart from the program's heap. Thousands of small blocks of all sizes,
// which live as long as a cut, would fragment that heap.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_ARENA_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace h5mirror::vfd {

// Gives memory in pieces and takes it back all at once. Not thread-safe. The arenas of a process
// share up to 16 MiB of spare memory.
class BufferArena {
 public:
  BufferArena() = default;
  ~BufferArena();
  BufferArena(const BufferArena&) = delete;
  BufferArena& operator=(const BufferArena&) = delete;

  // Throws std::bad_alloc if there is no more memory.
  char* Take(size_t size_bytes);
  // Makes the piece that ends at `end` longer in place. False: it was not taken last, or there is
  // no room behind it.
  bool Grow(const char* end, size_t size_bytes);
  void Swap(BufferArena& other);
  // Takes all pieces back.
  void Clear();
  // The bytes that were taken since the last Clear().
  uint64_t taken_bytes() const { return taken_bytes_; }

 private:
  struct Block {
    char* start = nullptr;
    size_t size_bytes = 0;
  };

  void AddBlock(size_t size_bytes);
  void Advance(size_t size_bytes);
  void Populate();

  std::vector<Block> blocks_;
  char* next_ = nullptr;  // free from here on, in the newest block
  char* end_ = nullptr;
  char* populated_end_ = nullptr;  // the pages up to here are populated
  uint64_t taken_bytes_ = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_ARENA_H_
