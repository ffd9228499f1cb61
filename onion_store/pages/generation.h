// One generation of a file's heads: docs/reference/format.md.
#ifndef H5MIRROR_ONION_STORE_PAGES_GENERATION_H_
#define H5MIRROR_ONION_STORE_PAGES_GENERATION_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/env.h"
#include "base/status_macros.h"
#include "onion_store/pages/direct_sums.h"
#include "onion_store/pages/sums_file.h"

namespace h5mirror::store {

// A head and its checksums. The file's state lock guards what changes.
struct Generation {
  int64_t number = 0;
  std::unique_ptr<EnvFile> head;
  std::unique_ptr<SumsFile> sums;
  // The sums of direct bytes that are not in `sums` yet. Set once, before other threads know the
  // generation; null: none are known.
  std::unique_ptr<DirectSums> direct_sums;
  bool hidden = false;  // the head is gen-N: no cut is durable
  bool has_cut = false;
  uint64_t cut_bytes = 0;          // the largest size of a cut, durable or not
  std::atomic<bool> dirty{false};  // direct bytes were written since the last sync
  // The head was found in use or changed: an earlier sync of it may have failed.
  bool may_lack_cut = false;

  // Call this before the first change of such a head: it cuts the head off again at its present
  // size. A truncation whose sync failed is in memory only, and no later sync covers it: the bytes
  // that it removed could come back between new ones. Errors: those of the disk; then the next call
  // does it.
  absl::Status CutHeadAgain() {
    if (!may_lack_cut) return absl::OkStatus();
    H5M_ASSIGN_OR_RETURN(const uint64_t size_bytes, head->Size());
    H5M_RETURN_IF_ERROR(head->Truncate(size_bytes));
    may_lack_cut = false;
    return absl::OkStatus();
  }
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_GENERATION_H_
