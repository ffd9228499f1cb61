// File access property lists for the drivers that bench/ sets side by side.
#ifndef H5MIRROR_BENCH_DRIVERS_H_
#define H5MIRROR_BENCH_DRIVERS_H_

#include <hdf5.h>

#include <string>

namespace h5mirror::bench {

// `default` (what HDF5_DRIVER says), `sec2`, `splitter` (to a second local file), `mirror` (stock
// splitter over stock mirror), `onion` (stock, its history beside the file) or any driver that HDF5
// loads by its name, such as `h5mirror`.
struct DriverChoice {
  std::string name = "sec2";
  // Plugins: their config string. `mirror`: ADDRESS:PORT:DIR. `splitter`: DIR. `onion`: the
  // revision to read, or nothing for the newest. Otherwise empty.
  std::string config;
};

// Makes the list that opens `path` with `choice`; the caller closes it. The stock drivers put
// their copy of `path` into DIR (absolute; it must exist) under the same base name. Throws
// Hdf5Error if HDF5 has no such driver, or the config is not as above.
hid_t MakeFapl(const DriverChoice& choice, const std::string& path);

}  // namespace h5mirror::bench

#endif  // H5MIRROR_BENCH_DRIVERS_H_
