// Drops versions for a rule or for want of space, without a caller.
#ifndef H5MIRROR_SERVER_HISTORY_THINNING_H_
#define H5MIRROR_SERVER_HISTORY_THINNING_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "onion_store/file.h"
#include "onion_store/retention.h"

namespace h5mirror::server {

// Called between two steps of long work; an error ends it, and is returned.
using Pause = absl::FunctionRef<absl::Status()>;

// Estimates, for each plan, how many bytes dropping its versions would give back.
absl::StatusOr<std::vector<uint64_t>> EstimatePrunes(
    store::File& file, const std::vector<std::vector<store::VersionNumber>>& plans, Pause pause);

// The versions to drop, and why, for one log line each.
struct DropOrder {
  std::vector<store::VersionNumber> versions;
  std::string rule;  // "keep_last = 10 of "runs/**" (h5mirrord.toml:12)"
};

// Drops the versions. Each is logged before, with file and rule. kFailedPrecondition: another prune
// of the file is under way.
absl::StatusOr<store::PruneProgress> DropVersions(store::File& file, const DropOrder& order,
                                                  Pause pause);

// How many bytes to give back, and the behaviour if that is not possible.
struct ThinRequest {
  uint64_t wanted_bytes = 0;  // drop as few versions as give back this much;
  uint64_t needed_bytes = 0;  // if all give back less, they must give back this; else `if_less`
  enum class IfLess : uint8_t { kDropNone, kDropAll } if_less = IfLess::kDropNone;
  std::string rule;
};

// Thinning for a limit goes this much beyond the need, so that it is not needed again at
// once.
inline uint64_t ThinningSlack(uint64_t limit_bytes) { return limit_bytes / 16; }

struct Thinned {
  int64_t versions = 0;
  uint64_t freed_bytes = 0;
};

// Drops the oldest versions without a tag that the head does not need; never the newest.
absl::StatusOr<Thinned> ThinHistory(store::File& file, const ThinRequest& request, Pause pause);

// About how many bytes dropping all of those versions would give back.
absl::StatusOr<uint64_t> EstimateThinning(store::File& file, Pause pause);

// "1-8, 10": `versions` rise.
std::string DescribeVersions(const std::vector<store::VersionNumber>& versions);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HISTORY_THINNING_H_
