// The facts of a dataset that are known without its data.
#ifndef H5MIRROR_H5DIFF_DATASET_FACTS_H_
#define H5MIRROR_H5DIFF_DATASET_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "hdf5/handle.h"

namespace h5mirror::tools {

struct DatasetFacts {
  hid_t dataset = H5I_INVALID_HID;  // borrowed
  hdf5::Handle type;                // in memory, with the file's own byte order
  hdf5::Handle space;
  bool is_null = false;
  std::vector<hsize_t> dims, dims_max;
  H5D_layout_t layout = H5D_CONTIGUOUS;
  std::vector<hsize_t> chunk;
  std::string filters;  // "gzip 4, shuffle"; empty: none
  std::string fill;     // a set fill value
  std::string mapping;  // of data in other files or datasets; empty: none
  // Contiguous data, where it is allocated.
  bool allocated = false;
  uint64_t storage_offset = 0;
  uint64_t storage_bytes = 0;

  bool InOnePiece() const { return layout == H5D_CONTIGUOUS && allocated && mapping.empty(); }
  std::string ShapeAndMax() const;
  std::string LayoutText() const;
  // Chunks in each dimension of a dataset of `shape`.
  std::vector<hsize_t> Grid(const std::vector<hsize_t>& shape) const;
};

absl::StatusOr<DatasetFacts> ReadDatasetFacts(hid_t dataset);

struct Chunk {
  uint64_t index = 0;  // in a grid, the last dimension fastest
  uint64_t offset = 0;
  uint64_t length = 0;
  uint32_t filter_mask = 0;
};
// By index.
using ChunkTable = std::vector<Chunk>;

absl::StatusOr<ChunkTable> ReadChunkTable(const DatasetFacts& facts,
                                          const std::vector<hsize_t>& grid);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_DATASET_FACTS_H_
