// Puts buffered bytes into their file: in order of offset, adjacent bytes in one write, and without
// bytes that the file has already.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_PUT_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_PUT_H_

#include <cstddef>
#include <cstdint>

#include "client_vfd/plugin/metadata_buffer/buffered_bytes.h"

namespace h5mirror::vfd {

// The local file, for a put. False: it failed, and the reason is on the host's error stack.
class LocalBytes {
 public:
  virtual ~LocalBytes() = default;
  virtual bool ReadLocal(uint64_t offset, size_t size, char* out) = 0;
  virtual bool WriteLocal(uint64_t offset, size_t size, const char* bytes) = 0;
  // The size of the file; bytes beyond it are not compared.
  virtual uint64_t LocalSizeBytes() const = 0;
  // The offset from which on no byte of the file was ever written.
  virtual uint64_t BlankFrom() const = 0;
};

// Buffers for one write and for the file's bytes in its place.
struct PutBuffers {
  static constexpr size_t kBytes = 1 << 20;

  Scratch run{kBytes};
  Scratch local{kBytes};
};

// How bytes that the file has already are treated.
enum class EqualBytes {
  kWrite,
  kSkip,  // left out at both ends of a write, if they are many
};

// Puts the buffered bytes in [from, to) and forgets them. False: a write failed; its bytes, and all
// behind them, stay buffered.
[[nodiscard]] bool PutBuffered(uint64_t from, uint64_t to, EqualBytes equal,
                               BufferedBytes& buffered, LocalBytes& file, PutBuffers& buffers);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_PUT_H_
