// How a head stands to a cut that was on its way to it: onion_store/embedded/cut_journal.h.
#ifndef H5MIRROR_ONION_STORE_EMBEDDED_JOURNAL_HEAD_H_
#define H5MIRROR_ONION_STORE_EMBEDDED_JOURNAL_HEAD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "onion_store/embedded/cut_journal.h"

namespace h5mirror::store {

enum class HeadIs : uint8_t {
  kBefore,    // in every page of the cut, and in size
  kOnItsWay,  // as a process leaves it that writes the pages one after the other and is killed
  kMixed,     // between the two, sector by sector, but in no such order
  kChanged,   // neither: others have changed it since, or do now
};

// `size` is that of `head`.
absl::StatusOr<HeadIs> CompareHead(EnvFile& head, uint64_t size, const JournalCut& cut);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_EMBEDDED_JOURNAL_HEAD_H_
