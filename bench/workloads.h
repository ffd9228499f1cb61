// The programs that bench/mirror times: typical work of HDF5's users, without a word about drivers.
#ifndef H5MIRROR_BENCH_WORKLOADS_H_
#define H5MIRROR_BENCH_WORKLOADS_H_

#include <hdf5.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace h5mirror::bench {

// How a workload wants its file.
enum class FileUse {
  kCreate,  // 'w': created, or truncated if it exists
  kReopen,  // 'r+': exists already, with content
};

struct Workload {
  const char* name;
  const char* what;  // for people, e.g. "100,000 groups"
  FileUse use;
  // Does everything between open and close, and returns the payload's bytes. Leaves no
  // object of `file` open. `scale` in (0, 1] shrinks counts, not sizes of single writes.
  // Throws Hdf5Error.
  uint64_t (*run)(hid_t file, double scale);
};

// A call of HDF5 failed; HDF5 has printed its error stack.
class Hdf5Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Returns `result`. If that is negative, throws an Hdf5Error that names `what`.
template <typename T>
T Check(T result, const char* what) {
  if (result < 0) throw Hdf5Error(std::string("HDF5 call failed: ") + what);
  return result;
}

std::span<const Workload> Workloads();

// nullptr: there is none of that name.
const Workload* FindWorkload(const std::string& name);

// Fills the file with one contiguous dataset of `size_mib` MiB: what kReopen workloads start from.
void FillPremade(hid_t file, uint64_t size_mib);

}  // namespace h5mirror::bench

#endif  // H5MIRROR_BENCH_WORKLOADS_H_
