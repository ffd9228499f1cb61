// The newest cut of a file, durable or not.
#ifndef H5MIRROR_ONION_STORE_FILE_CUTS_LAST_CUT_H_
#define H5MIRROR_ONION_STORE_FILE_CUTS_LAST_CUT_H_

#include <cstdint>

#include "absl/time/time.h"
#include "onion_store/stage/stage_log.h"
#include "onion_store/types.h"

namespace h5mirror::store {

// The file's state lock guards it.
struct LastCut {
  CutNumber number = 0;  // 0: there is none
  uint64_t size_bytes = 0;
  absl::Time time;
  BarrierId barrier;
  StageEnd stage_end;  // after its record: a session's end drops later bytes
  // The cut is neither a commit nor a folded close, so it becomes a version if the writer vanishes.
  bool lacks_version = false;
  uint64_t written_bytes = 0;  // by all cuts since the file was loaded
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_CUTS_LAST_CUT_H_
