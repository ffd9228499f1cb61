#include "h5perf_serial/settle.h"

#include <array>
#include <limits>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::perf {
namespace {

constexpr size_t kRankDefault = 2;
constexpr size_t kRankMax = 32;  // HDF5's (H5S_MAX_RANK)

// `list`, or multiples of `step`.
Sizes OrDefault(const std::optional<Sizes>& list, size_t rank, uint64_t step) {
  if (list.has_value()) return *list;
  Sizes sizes;
  for (size_t d = 1; d <= rank; ++d) sizes.push_back(step * d);
  return sizes;
}

absl::StatusOr<size_t> RankOf(const GivenShape& given) {
  const std::pair<const char*, const std::optional<Sizes>&> lists[] = {
      {"-e", given.dataset}, {"-x", given.buffer}, {"-r", given.order}, {"-c", given.chunk}};
  size_t rank = 0;
  const char* first = nullptr;
  for (const auto& [name, list] : lists) {
    if (!list.has_value()) continue;
    if (first != nullptr && list->size() != rank) {
      return absl::InvalidArgumentError(StrCat(first, " has ", rank, " dimensions and ", name,
                                               " has ", list->size(), "; give as many to each"));
    }
    if (first == nullptr) first = name;
    rank = list->size();
  }
  if (rank > kRankMax) {
    return absl::InvalidArgumentError(StrCat(rank, " dimensions are more than ", kRankMax));
  }
  return first == nullptr ? kRankDefault : rank;
}

absl::Status SettleShape(const GivenShape& given, Options& options) {
  H5M_ASSIGN_OR_RETURN(const size_t rank, RankOf(given));
  Shape& shape = options.shape;
  shape.dataset = OrDefault(given.dataset, rank, 100);
  shape.buffer = OrDefault(given.buffer, rank, 10);
  for (const uint64_t dimension : OrDefault(given.order, rank, 1)) {
    if (dimension < 1 || dimension > rank) {
      return absl::InvalidArgumentError(
          StrCat("-r names dimension ", dimension, "; there are 1 to ", rank));
    }
    shape.order.push_back(dimension - 1);
  }
  H5M_RETURN_IF_ERROR(CheckShape(shape));
  if (!given.chunked) return absl::OkStatus();
  options.settings.chunk = OrDefault(given.chunk, rank, 10);
  for (const uint64_t size : *options.settings.chunk) {
    if (size == 0)
      return absl::InvalidArgumentError("a chunk's dimension is 0; it must be at least 1");
  }
  return absl::OkStatus();
}

absl::Status CheckPages(const Hdf5Settings& settings) {
  const uint64_t page_bytes = settings.page_size_bytes;
  const uint64_t buffer_bytes = settings.page_buffer_bytes;
  if (buffer_bytes > 0 && page_bytes == 0) {
    return absl::InvalidArgumentError("-b wants -G: HDF5 buffers pages of files that have pages");
  }
  if (buffer_bytes > 0 && buffer_bytes < page_bytes) {
    return absl::InvalidArgumentError("-b is less than -G: the page buffer must hold a page");
  }
  if (page_bytes > 0 && (page_bytes < 512 || page_bytes > (uint64_t{1} << 30))) {
    return absl::InvalidArgumentError("-G takes 512 to 1G, which are HDF5's bounds");
  }
  return absl::OkStatus();
}

absl::Status CheckLibver(const std::string& libver) {
  constexpr std::array kBounds = {"earliest", "v18", "v110", "v112", "v114", "latest"};
  for (const char* bound : kBounds) {
    if (libver.empty() || libver == bound) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      StrCat("--libver is earliest, v18, v110, v112, v114 or latest, not '", libver, "'"));
}

absl::Status CheckSettings(const Hdf5Settings& settings) {
  if (settings.extendable && !settings.chunk.has_value()) {
    return absl::InvalidArgumentError("-t wants -c: HDF5 extends only chunked datasets");
  }
  if ((settings.shuffle || settings.deflate.has_value()) && !settings.chunk.has_value()) {
    return absl::InvalidArgumentError("--shuffle and --deflate want -c: HDF5 filters chunks");
  }
  H5M_RETURN_IF_ERROR(CheckPages(settings));
  return CheckLibver(settings.libver);
}

}  // namespace

absl::Status Settle(const GivenShape& given, Options& options) {
  H5M_RETURN_IF_ERROR(SettleShape(given, options));
  H5M_RETURN_IF_ERROR(CheckSettings(options.settings));
  if (options.drivers.empty()) options.drivers.push_back(Driver{});
  if (options.drivers.size() > 1 && !options.compare) {
    return absl::InvalidArgumentError(
        "-v is given more than once: --compare sets drivers side by side");
  }
  if (options.compare && options.drivers.size() < 2) {
    return absl::InvalidArgumentError(
        "--compare wants two drivers or more: -v sec2 -v h5mirror:server=...");
  }
  if (options.compare && !options.hdf5) {
    return absl::InvalidArgumentError(
        "--compare compares drivers of HDF5, which -A posix leaves out");
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::perf
