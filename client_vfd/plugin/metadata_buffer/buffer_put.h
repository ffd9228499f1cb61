// Putting held bytes into the file that they are of: in order of offset, what lies side by side in
// one write, and nothing that the file has already.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_PUT_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_PUT_H_

#include <cstddef>
#include <cstdint>

#include "client_vfd/plugin/metadata_buffer/buffered_bytes.h"

namespace h5mirror::vfd {

// The local file as a put sees it. False: failed, and the reason is on the host's error stack.
class LocalBytes {
 public:
  virtual ~LocalBytes() = default;
  virtual bool ReadLocal(uint64_t offset, size_t size, char* out) = 0;
  virtual bool WriteLocal(uint64_t offset, size_t size, const char* bytes) = 0;
  // Beyond it nothing is compared.
  virtual uint64_t LocalSizeBytes() const = 0;
  // From here on nobody has written anything into the file.
  virtual uint64_t BlankFrom() const = 0;
};

// Room for one write and for what the file has in its place.
struct PutBuffers {
  static constexpr size_t kBytes = 1 << 20;

  Scratch run{kBytes};
  Scratch local{kBytes};
};

// What the file has already.
enum class EqualBytes {
  kWrite,
  kSkip,  // left out at both ends of a write, as long as there is much of it
};

// Puts what is held in [from, to) and forgets what was put. False: a write failed; what it was to
// write, and all behind it, is held on.
[[nodiscard]] bool PutBuffered(uint64_t from, uint64_t to, EqualBytes equal,
                               BufferedBytes& buffered, LocalBytes& file, PutBuffers& buffers);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_METADATA_BUFFER_BUFFER_PUT_H_
