#include "bench/tuning_settings.h"

#include "bench/workloads.h"

namespace h5mirror::bench {
namespace {

constexpr size_t kSlots = 1009;  // A prime well above the 16 chunks of the talk's dataset.

}  // namespace

void SetAccess(const TuningSettings& settings, hid_t fapl) {
  if (settings.meta_block_bytes >= 0) {
    Check(H5Pset_meta_block_size(fapl, static_cast<hsize_t>(settings.meta_block_bytes)),
          "H5Pset_meta_block_size");
  }
  if (settings.page_buffer_bytes > 0) {
    Check(H5Pset_page_buffer_size(fapl, static_cast<size_t>(settings.page_buffer_bytes), 0, 0),
          "H5Pset_page_buffer_size");
  }
  if (settings.chunk_cache_bytes >= 0) {
    Check(H5Pset_cache(fapl, 0, kSlots, static_cast<size_t>(settings.chunk_cache_bytes),
                       settings.preemption),
          "H5Pset_cache");
  }
  if (settings.sieve_bytes >= 0) {
    Check(H5Pset_sieve_buf_size(fapl, static_cast<size_t>(settings.sieve_bytes)),
          "H5Pset_sieve_buf_size");
  }
  if (settings.alignment_bytes > 1) {
    Check(H5Pset_alignment(fapl, static_cast<hsize_t>(settings.threshold_bytes),
                           static_cast<hsize_t>(settings.alignment_bytes)),
          "H5Pset_alignment");
  }
  if (settings.libver == "latest") {
    Check(H5Pset_libver_bounds(fapl, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST), "H5Pset_libver_bounds");
  }
}

hid_t MakeFcpl(const TuningSettings& settings) {
  const hid_t fcpl = Check(H5Pcreate(H5P_FILE_CREATE), "H5Pcreate");
  if (settings.page_bytes > 0) {
    Check(H5Pset_file_space_strategy(fcpl, H5F_FSPACE_STRATEGY_PAGE, false, 1),
          "H5Pset_file_space_strategy");
    Check(H5Pset_file_space_page_size(fcpl, static_cast<hsize_t>(settings.page_bytes)),
          "H5Pset_file_space_page_size");
  }
  return fcpl;
}

hid_t MakeDcpl(const TuningSettings& settings, const std::vector<hsize_t>& chunk) {
  const hid_t dcpl = Check(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  if (!chunk.empty()) {
    Check(H5Pset_chunk(dcpl, static_cast<int>(chunk.size()), chunk.data()), "H5Pset_chunk");
  }
  if (settings.shuffle) Check(H5Pset_shuffle(dcpl), "H5Pset_shuffle");
  if (settings.deflate >= 0) {
    Check(H5Pset_deflate(dcpl, static_cast<unsigned>(settings.deflate)), "H5Pset_deflate");
  }
  if (settings.compact) Check(H5Pset_layout(dcpl, H5D_COMPACT), "H5Pset_layout");
  if (!settings.allocate.empty()) {
    const bool early = settings.allocate == "early";
    Check(H5Pset_alloc_time(dcpl, early ? H5D_ALLOC_TIME_EARLY : H5D_ALLOC_TIME_LATE),
          "H5Pset_alloc_time");
    Check(H5Pset_fill_time(dcpl, settings.never_fill ? H5D_FILL_TIME_NEVER : H5D_FILL_TIME_ALLOC),
          "H5Pset_fill_time");
  }
  return dcpl;
}

hid_t MakeDxpl(const TuningSettings& settings) {
  const hid_t dxpl = Check(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate");
  if (settings.transfer_bytes > 0) {
    Check(H5Pset_buffer(dxpl, static_cast<size_t>(settings.transfer_bytes), nullptr, nullptr),
          "H5Pset_buffer");
  }
  return dxpl;
}

}  // namespace h5mirror::bench
