// Puts the checksums of a cut's direct bytes into sums, in steps: between two steps other cuts may
// become durable. It takes over the sums that the writes themselves gave (direct_sums.h), and reads
// the other pages back from the head. Holes need no sums.
#ifndef H5MIRROR_ONION_STORE_FILE_APPLY_DIRECT_PASS_H_
#define H5MIRROR_ONION_STORE_FILE_APPLY_DIRECT_PASS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/extent.h"
#include "onion_store/file/cuts/file_layers.h"

namespace h5mirror::store {

// Not thread-safe: an apply holds the file's work lock. The layer is frozen, so that none of its
// direct pages changes meanwhile, and its staged bytes are in the head.
class DirectPass {
 public:
  // A step reads about so many bytes of the head: at 200 MB/s a twelfth of a second.
  static constexpr uint64_t kStepBytes = uint64_t{16} << 20;
  static constexpr uint64_t kChunkBytes = 1 << 20;

  // `layer`, whose generation has a head and sums, must outlive this.
  DirectPass(const CutLayer& layer, uint32_t page_size_bytes);

  // Does a step. False: nothing is left to do. Errors: those of the disk.
  absl::StatusOr<bool> Step();
  // How many bytes were read back so far.
  uint64_t read_bytes() const { return read_bytes_; }

 private:
  uint64_t PageOf(uint64_t offset) const { return offset / page_size_bytes_; }
  // Sums some pages from at_ on, before `end`. Returns what that cost, in bytes of a read.
  absl::StatusOr<uint64_t> SumSome(uint64_t end);
  absl::StatusOr<uint64_t> TakeOver(uint64_t end);
  absl::StatusOr<uint64_t> ReadBack(uint64_t end);

  const CutLayer& layer_;
  const uint32_t page_size_bytes_;
  const std::vector<Extent> direct_;
  size_t next_ = 0;  // of direct_
  uint64_t at_ = 0;  // a multiple of the page
  Extent data_;      // of the head; no holes
  uint64_t read_bytes_ = 0;
  std::string buffer_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_APPLY_DIRECT_PASS_H_
