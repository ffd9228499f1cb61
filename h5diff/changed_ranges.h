// Where two versions of one file may differ, as the server's page index tells it.
#ifndef H5MIRROR_H5DIFF_CHANGED_RANGES_H_
#define H5MIRROR_H5DIFF_CHANGED_RANGES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "base/extent_set.h"
#include "rpc/client.h"

namespace h5mirror::tools {

// Ranges that are held in memory; beyond that the smallest gaps are closed, which only makes more
// to look at.
inline constexpr size_t kRangesMax = 1 << 20;

struct ChangedRanges {
  v1::Version old_version, new_version;
  uint32_t page_size_bytes = 0;
  ExtentSet changed{kRangesMax};
};

// `on_progress` may be null; it is told the bytes of all ranges until then.
// Errors: those of ListChanges; kDataLoss the answer makes no sense.
absl::StatusOr<ChangedRanges> FindChangedRanges(rpc::Client& client, const std::string& name,
                                                int64_t from, int64_t to,
                                                const std::function<void(uint64_t)>& on_progress);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_CHANGED_RANGES_H_
