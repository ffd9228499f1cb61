// The changes between two cuts, as the server tells them.
#ifndef H5MIRROR_H5DIFF_CUT_DELTA_H_
#define H5MIRROR_H5DIFF_CUT_DELTA_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/extent_set.h"
#include "rpc/client.h"

namespace h5mirror::tools {

// The newest cut of a file, and its differences from the one that the caller had.
struct CutDelta {
  v1::Snapshot snapshot;
  std::string file_id;
  // The differences are not known.
  bool whole = true;
  ExtentSet changed;
  // The part of it that is metadata, in whole pages, with the bytes of the newest cut. Not all of
  // it, where it is more than the caller wants.
  ExtentSet metadata;
  bool all_metadata = true;
  std::vector<std::pair<uint64_t, std::string>> pages;
  // Cuts between the two that the server holds too.
  std::vector<int64_t> passed_cuts;
};

struct DeltaRequest {
  std::string file;
  // The holder of the cut from then on: 16 bytes.
  std::string reader_id;
  int64_t after_cut = 0;     // 0: the caller has none
  std::string file_id;       // of that
  int64_t at_least_cut = 0;  // an older one is not enough
  uint64_t metadata_bytes_max = 0;
};

// Asks once, and returns as soon as the cut is there. Errors: those of FollowFile; kCancelled: it
// took longer than `timeout`.
absl::StatusOr<CutDelta> FetchCutDelta(rpc::Client& client, const DeltaRequest& wanted,
                                       absl::Duration timeout);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_CUT_DELTA_H_
