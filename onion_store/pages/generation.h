// One generation of a file's heads: docs/reference/format.md.
#ifndef H5MIRROR_ONION_STORE_PAGES_GENERATION_H_
#define H5MIRROR_ONION_STORE_PAGES_GENERATION_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/env.h"
#include "onion_store/pages/direct_sums.h"
#include "onion_store/pages/sums_file.h"

namespace h5mirror::store {

// A head and its checksums. The file's state lock guards what changes.
struct Generation {
  int64_t number = 0;
  std::unique_ptr<EnvFile> head;
  std::unique_ptr<SumsFile> sums;
  // Of direct bytes whose sums are not in `sums` yet. Set once, before others know the generation;
  // null: none are known.
  std::unique_ptr<DirectSums> direct_sums;
  bool hidden = false;  // the head is gen-N: no cut is durable
  bool has_cut = false;
  uint64_t cut_bytes = 0;          // the largest size of a cut, durable or not
  std::atomic<bool> dirty{false};  // direct bytes were written since the last sync
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_GENERATION_H_
