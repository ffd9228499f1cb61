// HDF5's settings that bench/tuning.py sets, as property lists.
#ifndef H5MIRROR_BENCH_TUNING_SETTINGS_H_
#define H5MIRROR_BENCH_TUNING_SETTINGS_H_

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <vector>

namespace h5mirror::bench {

// -1 and empty: HDF5's default.
struct TuningSettings {
  int64_t meta_block_bytes = -1;
  int64_t page_bytes = -1;  // of the file's space
  int64_t page_buffer_bytes = -1;
  int64_t chunk_cache_bytes = -1;
  double preemption = 0.75;  // of the chunk cache
  int64_t sieve_bytes = -1;
  int64_t transfer_bytes = -1;  // H5Pset_buffer
  int64_t threshold_bytes = 1;  // of alignment
  int64_t alignment_bytes = 1;
  std::string libver;  // "latest"
  int deflate = -1;    // level
  bool shuffle = false;
  bool compact = false;
  bool chunked = false;
  std::string allocate;     // "early", "late"
  bool never_fill = false;  // unwritten elements are not filled
};

// Adds the settings to a list that has its driver. All functions throw Hdf5Error.
void SetAccess(const TuningSettings& settings, hid_t fapl);
// The caller closes what these return.
hid_t MakeFcpl(const TuningSettings& settings);
// `chunk`: the chunk of a chunked dataset; empty for other datasets.
hid_t MakeDcpl(const TuningSettings& settings, const std::vector<hsize_t>& chunk);
hid_t MakeDxpl(const TuningSettings& settings);

}  // namespace h5mirror::bench

#endif  // H5MIRROR_BENCH_TUNING_SETTINGS_H_
