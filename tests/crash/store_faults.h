// Faults inside the store, planted without a word of it in the store: the linker sends the calls of
// some functions through here (--wrap in CMakeLists.txt).
#ifndef H5MIRROR_TESTS_CRASH_STORE_FAULTS_H_
#define H5MIRROR_TESTS_CRASH_STORE_FAULTS_H_

#include <cstdint>

namespace h5mirror::store {

enum class StoreFault : uint8_t {
  kNone,
  kChecksumsNotCompared,  // all checksums are equal
  kNewerPreImageWins,  // of the rows of a page the last counts, not the first at or after a version
  kDirectSumsKept,     // sums of direct writes count after other bytes have come over them
  // Of a prune; see docs/design/032-pruning.md.
  kFreedBeforeTransaction,  // a segment goes before the rows that name it point elsewhere
  kMovedBeforeDropped,      // rows go to older versions before their own is gone
  kNewestFirst,             // rows of newer versions are moved first
  kLongestFirst,            // of one version the longest rows
  kSizeOfKeptOnly,          // bytes beyond the size of the version that gets a row are lost
  kOldestKeptGets,          // rows go to the oldest version that is kept, not to the next
  kCopiesNotSynced,         // records that were copied count as durable
  kGenerationsKept,         // a generation without a version stays
  kReadersNotTold,          // a reader goes on with a version that is dropped meanwhile
  kTagsKept,                // tags of dropped versions stay
};

// From now on, in all threads. No store may be open.
void PlantStoreFault(StoreFault fault);
bool IsPlanted(StoreFault fault);

}  // namespace h5mirror::store

#endif  // H5MIRROR_TESTS_CRASH_STORE_FAULTS_H_
