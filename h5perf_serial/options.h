// What one run of h5perf_serial is asked to do.
#ifndef H5MIRROR_H5PERF_SERIAL_OPTIONS_H_
#define H5MIRROR_H5PERF_SERIAL_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "h5perf_serial/driver.h"
#include "h5perf_serial/option_words.h"
#include "h5perf_serial/shape.h"

namespace h5mirror::perf {

enum class Format { kText, kJson, kCsv };
enum class Contents { kTiled, kRandom };

// HDF5's settings beyond the driver; what is not set stays HDF5's default.
struct Hdf5Settings {
  std::optional<Sizes> chunk;
  bool extendable = false;
  std::optional<uint64_t> alignment, threshold;
  uint64_t page_size_bytes = 0;     // 0: no pages
  uint64_t page_buffer_bytes = 0;   // 0: none
  std::optional<unsigned> deflate;  // level
  bool shuffle = false;
  std::optional<uint64_t> chunk_cache_bytes;
  uint64_t chunk_cache_slots = 0;  // 0: chosen for the chunks
  double chunk_cache_preemption = 0.75;
  std::optional<uint64_t> sieve_bytes, meta_block_bytes;
  std::string libver;  // empty: the library's bounds
};

struct Options {
  bool help = false;
  bool version = false;
  bool posix = true;
  bool hdf5 = true;
  Shape shape;
  Hdf5Settings settings;
  std::vector<Driver> drivers;  // one, or several to compare
  bool compare = false;
  int iterations = 1;
  bool write_only = false;
  bool random_order = false;
  Contents contents = Contents::kTiled;
  bool fsync = false;
  bool drop_caches = false;
  Debug debug;
  std::vector<double> percentiles;  // for the text
  Format format = Format::kText;
  std::string output;  // empty: standard output
};

// The command line without the program's name. kInvalidArgument says what is wrong with it.
absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments);

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_OPTIONS_H_
