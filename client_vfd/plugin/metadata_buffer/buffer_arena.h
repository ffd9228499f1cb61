// Memory for held bytes, apart from the program's heap: thousands of small blocks of all sizes that
// live for as long as a cut would scatter it.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_ARENA_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace h5mirror::vfd {

// Gives memory and takes it back all at once. Not thread-safe; arenas of different threads share up
// to 16 MiB of the process for what is taken next.
class BufferArena {
 public:
  BufferArena() = default;
  ~BufferArena();
  BufferArena(const BufferArena&) = delete;
  BufferArena& operator=(const BufferArena&) = delete;

  // Where memory ends, std::bad_alloc is thrown.
  char* Take(size_t size_bytes);
  // Makes what was taken last, and ends at `end`, longer where it lies. False: it was not, or there
  // is no room behind it.
  bool Grow(const char* end, size_t size_bytes);
  void Swap(BufferArena& other);
  // All that was taken is dead.
  void Clear();
  // What was taken since the last Clear().
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
  char* populated_end_ = nullptr;  // pages up to here are not asked for any more
  uint64_t taken_bytes_ = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_ARENA_H_
