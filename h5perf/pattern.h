// Which bytes of a dataset a process moves, and in which order.
#ifndef H5MIRROR_H5PERF_PATTERN_H_
#define H5MIRROR_H5PERF_PATTERN_H_

#include <array>
#include <cstdint>

#include "h5perf/options.h"

namespace h5mirror::pperf {

// One transfer in a file without a format: `count` pieces of `bytes` each, `stride` bytes from the
// start of one to the next. They follow each other in the buffer.
struct Pieces {
  uint64_t offset = 0;  // of the first one, in the file
  uint64_t bytes = 0;
  uint64_t count = 0;
  uint64_t stride = 0;

  bool operator==(const Pieces&) const = default;
};

// The hyperslab of a transfer: rows, then columns; one dimension uses the first of each alone.
struct Slab {
  std::array<uint64_t, 2> start = {}, stride = {}, count = {}, block = {};
};

// What one process of a group does with each dataset. In one dimension a dataset has
// bytes_per_process x processes bytes, and the buffer is one run of blocks. In two dimensions it is
// a square of that side; the buffer is block rows of `buffer` columns, or, where processes are
// interleaved, `buffer` rows of block columns.
//
// Contiguous: each process has a part of its own. Interleaved: a block of the first process, one of
// the second, and so on. Settle() has checked that all of it divides.
class Pattern {
 public:
  Pattern(const Workload& work, uint64_t buffer, int processes, int rank);

  uint64_t side() const { return side_; }  // of one dimension: all bytes of the dataset
  uint64_t dataset_bytes() const { return work_.two_d ? side_ * side_ : side_; }
  uint64_t transfer_bytes() const { return work_.two_d ? buffer_ * work_.block : buffer_; }
  // How many transfers the process makes in each dataset.
  uint64_t count() const { return dataset_bytes() / processes_ / transfer_bytes(); }

  // Of POSIX and MPI-IO: transfer `number` (from 0) of dataset `dataset` (from 0), which lie behind
  // each other in the file. With chunks, in two dimensions, blocks are stored one after the other.
  Pieces PiecesOf(uint64_t dataset, uint64_t number) const;
  // Of HDF5: the first transfer, and how far each one is moved from there.
  Slab FirstSlab() const;
  std::array<uint64_t, 2> MoveOf(uint64_t number) const;
  // Rows and columns of the buffer; one dimension: its bytes, and 1.
  std::array<uint64_t, 2> BufferShape() const;

 private:
  // Bytes of the dataset before what this process moves first, as a plain file has it.
  uint64_t Begin() const;

  const Workload& work_;
  const uint64_t buffer_;
  const uint64_t processes_;
  const uint64_t rank_;
  const uint64_t side_;
};

}  // namespace h5mirror::pperf

#endif  // H5MIRROR_H5PERF_PATTERN_H_
