// The dataset, the transfer buffer that moves over it, and in which order.
#ifndef H5MIRROR_H5PERF_SERIAL_SHAPE_H_
#define H5MIRROR_H5PERF_SERIAL_SHAPE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "h5perf_serial/sizes.h"

namespace h5mirror::perf {

// Elements are bytes, so sizes are too. All members have one length, the rank.
struct Shape {
  Sizes dataset;
  Sizes buffer;
  // Dimensions, from 0 on; the first one listed moves fastest.
  std::vector<size_t> order;

  size_t rank() const { return dataset.size(); }
  uint64_t dataset_bytes() const { return Product(dataset); }
  uint64_t buffer_bytes() const { return Product(buffer); }
  uint64_t buffer_count() const;
};

// kInvalidArgument where a size is 0, a dataset's dimension is no multiple of the buffer's, `order`
// is no permutation, or the dataset has 2^63 bytes or more.
absl::Status CheckShape(const Shape& shape);

// The buffers of a shape, by number from 0 to buffer_count().
class Walk {
 public:
  // `shape` must outlive it. With `random` in an order that is the same at each run.
  Walk(const Shape& shape, bool random);

  // Where the buffer's first element lies; `offset` has the rank's length.
  void OffsetOf(uint64_t number, Sizes& offset) const;
  uint64_t count() const { return count_; }

 private:
  const Shape& shape_;
  const uint64_t count_;
  std::vector<uint64_t> steps_;    // buffers along each dimension
  std::vector<uint64_t> shuffle_;  // empty: as they come
};

// The size of a dataset that grows with what is written into it, a buffer at a time.
class Extent {
 public:
  // `shape` must outlive it.
  Extent(const Shape& shape, Sizes size) : shape_(shape), size_(std::move(size)) {}

  // True where it had to grow for the buffer at `offset`.
  bool Cover(const Sizes& offset);
  const Sizes& size() const { return size_; }

 private:
  const Shape& shape_;
  Sizes size_;
};

// Contiguous runs of one buffer in the row-major file: trailing dimensions that the buffer covers
// whole are one run.
class Runs {
 public:
  explicit Runs(const Shape& shape);

  uint64_t run_bytes() const { return run_bytes_; }
  uint64_t count() const { return count_; }
  // Calls `visit` with the place of each run in the file and in the buffer, in this order, until
  // one fails.
  absl::Status Visit(
      const Sizes& offset,
      absl::FunctionRef<absl::Status(uint64_t file_offset, uint64_t buffer_offset)> visit) const;

 private:
  const Shape& shape_;
  Sizes strides_;       // bytes from one element to the next, in the file
  size_t inner_ = 0;    // the outermost dimension within a run
  uint64_t run_bytes_;  // of one run
  uint64_t count_ = 1;
};

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_SHAPE_H_
