// The bytes that the read-only driver reads.
#ifndef H5MIRROR_HDF5_BYTE_SOURCE_H_
#define H5MIRROR_HDF5_BYTE_SOURCE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace h5mirror::hdf5 {

// The bytes of one HDF5 file that does not change. Not thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // For messages.
  virtual const std::string& name() const = 0;
  virtual uint64_t size_bytes() const = 0;
  // Fills `out` with the bytes [offset, offset + out.size()); beyond the end: zeros.
  virtual absl::Status Read(uint64_t offset, absl::Span<char> out) = 0;
};

// HDF5's kind of a range that it reads. It uses one word for several things (H5FDdevelop.h).
enum class ReadKind : uint8_t {
  kSuperblock,
  kObjectHeader,   // or a header of another structure, which has a signature
  kLocalHeap,      // or a block of a fractal heap
  kRawData,        // or a global heap's collection
  kOtherMetadata,  // trees
};

// Told of each read that HDF5 makes of the file.
class ReadObserver {
 public:
  virtual ~ReadObserver() = default;
  virtual void OnRead(ReadKind kind, uint64_t offset, absl::Span<const char> bytes) = 0;
};

}  // namespace h5mirror::hdf5

#endif  // H5MIRROR_HDF5_BYTE_SOURCE_H_
