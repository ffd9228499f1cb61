// Faults inside the store, planted without a word of it in the store: the linker sends the calls of
// two functions through here (--wrap in CMakeLists.txt).
#ifndef H5MIRROR_TESTS_CRASH_STORE_FAULTS_H_
#define H5MIRROR_TESTS_CRASH_STORE_FAULTS_H_

#include <cstdint>

namespace h5mirror::store {

enum class StoreFault : uint8_t {
  kNone,
  kChecksumsNotCompared,  // all checksums are equal
  kNewerPreImageWins,  // of the rows of a page the last counts, not the first at or after a version
};

// From now on, in all threads. No store may be open.
void PlantStoreFault(StoreFault fault);

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_STORE_FAULTS_H_
