// Compares a head with a cut that was on its way to it: onion_store/embedded/cut_journal.h.
#ifndef H5MIRROR_ONION_STORE_EMBEDDED_JOURNAL_HEAD_H_
#define H5MIRROR_ONION_STORE_EMBEDDED_JOURNAL_HEAD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "base/env.h"
#include "onion_store/embedded/cut_journal.h"

namespace h5mirror::store {

enum class HeadIs : uint8_t {
  kBefore,    // the old side, in every page of the cut and in size
  kOnItsWay,  // as a killed process leaves it that wrote the pages in order
  kMixed,     // each sector is of one side, but not in that order
  kChanged,   // on neither side: other programs have changed it, or do so now
};

// `size` is that of `head`.
absl::StatusOr<HeadIs> CompareHead(EnvFile& head, uint64_t size, const JournalCut& cut);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_EMBEDDED_JOURNAL_HEAD_H_
