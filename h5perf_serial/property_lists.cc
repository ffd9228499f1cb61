#include "h5perf_serial/property_lists.h"

#include <algorithm>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::perf {
namespace {

using hdf5::Check;
using hdf5::Handle;

constexpr uint64_t kSlotsMin = 521;  // HDF5's default.

H5F_libver_t LowBound(const std::string& libver) {
  if (libver == "earliest") return H5F_LIBVER_EARLIEST;
  if (libver == "v18") return H5F_LIBVER_V18;
  if (libver == "v110") return H5F_LIBVER_V110;
  if (libver == "v112") return H5F_LIBVER_V112;
  if (libver == "v114") return H5F_LIBVER_V114;
  return H5F_LIBVER_LATEST;
}

bool IsPrime(uint64_t number) {
  for (uint64_t divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return true;
}

// A prime about a hundred times the chunks that the cache holds, as HDF5's manual advises.
uint64_t SlotsOf(const Hdf5Settings& settings) {
  if (settings.chunk_cache_slots > 0) return settings.chunk_cache_slots;
  const uint64_t chunk_bytes = settings.chunk.has_value() ? Product(*settings.chunk) : kMegabyte;
  const uint64_t chunks = *settings.chunk_cache_bytes / std::max<uint64_t>(chunk_bytes, 1);
  uint64_t slots = std::clamp<uint64_t>(chunks * 100, kSlotsMin, 1 << 20);
  while (!IsPrime(slots)) ++slots;
  return slots;
}

absl::Status SetAccess(const Hdf5Settings& settings, hid_t fapl) {
  if (settings.alignment.has_value() || settings.threshold.has_value()) {
    H5M_RETURN_IF_ERROR(Check(
        H5Pset_alignment(fapl, settings.threshold.value_or(1), settings.alignment.value_or(1)),
        "-a and -T"));
  }
  if (settings.page_buffer_bytes > 0) {
    H5M_RETURN_IF_ERROR(
        Check(H5Pset_page_buffer_size(fapl, settings.page_buffer_bytes, 0, 0), "-b"));
  }
  if (settings.chunk_cache_bytes.has_value()) {
    H5M_RETURN_IF_ERROR(Check(H5Pset_cache(fapl, 0, SlotsOf(settings), *settings.chunk_cache_bytes,
                                           settings.chunk_cache_preemption),
                              "--chunk-cache"));
  }
  if (settings.sieve_bytes.has_value()) {
    H5M_RETURN_IF_ERROR(Check(H5Pset_sieve_buf_size(fapl, *settings.sieve_bytes), "--sieve"));
  }
  if (settings.meta_block_bytes.has_value()) {
    H5M_RETURN_IF_ERROR(
        Check(H5Pset_meta_block_size(fapl, *settings.meta_block_bytes), "--meta-block"));
  }
  if (settings.libver.empty()) return absl::OkStatus();
  return Check(H5Pset_libver_bounds(fapl, LowBound(settings.libver), H5F_LIBVER_LATEST),
               "--libver");
}

}  // namespace

absl::StatusOr<Handle> MakeFapl(const Hdf5Settings& settings, const Driver& driver,
                                const std::string& base) {
  H5M_ASSIGN_OR_RETURN(Handle fapl, hdf5::Own(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"));
  H5M_RETURN_IF_ERROR(SetDriver(driver, base, fapl.get()));
  H5M_RETURN_IF_ERROR(SetAccess(settings, fapl.get()));
  return fapl;
}

absl::StatusOr<Handle> MakeFcpl(const Hdf5Settings& settings) {
  H5M_ASSIGN_OR_RETURN(Handle fcpl, hdf5::Own(H5Pcreate(H5P_FILE_CREATE), "H5Pcreate"));
  if (settings.page_size_bytes > 0) {
    H5M_RETURN_IF_ERROR(
        Check(H5Pset_file_space_strategy(fcpl.get(), H5F_FSPACE_STRATEGY_PAGE, false, 1), "-G"));
    H5M_RETURN_IF_ERROR(
        Check(H5Pset_file_space_page_size(fcpl.get(), settings.page_size_bytes), "-G"));
  }
  return fcpl;
}

absl::StatusOr<Handle> MakeDcpl(const Hdf5Settings& settings) {
  H5M_ASSIGN_OR_RETURN(Handle dcpl, hdf5::Own(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate"));
  if (settings.chunk.has_value()) {
    const std::vector<hsize_t> chunk(settings.chunk->begin(), settings.chunk->end());
    H5M_RETURN_IF_ERROR(
        Check(H5Pset_chunk(dcpl.get(), static_cast<int>(chunk.size()), chunk.data()), "-c"));
  }
  if (settings.shuffle) H5M_RETURN_IF_ERROR(Check(H5Pset_shuffle(dcpl.get()), "--shuffle"));
  if (settings.deflate.has_value()) {
    H5M_RETURN_IF_ERROR(Check(H5Pset_deflate(dcpl.get(), *settings.deflate), "--deflate"));
  }
  return dcpl;
}

}  // namespace h5mirror::perf
