// Dropping versions without a caller: what a rule or a lack of space wants gone.
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

// About how many bytes dropping the versions of each plan would give back.
absl::StatusOr<std::vector<uint64_t>> EstimatePrunes(
    store::File& file, const std::vector<std::vector<store::VersionNumber>>& plans, Pause pause);

// What was dropped, and why; for one log line each.
struct DropOrder {
  std::vector<store::VersionNumber> versions;
  std::string rule;  // "keep_last = 10 of "runs/**" (h5mirrord.toml:12)"
};

// Drops them: each one is in the log, with file and rule, before it goes. Returns the bytes that
// were given back. kFailedPrecondition: another prune of the file is under way.
absl::StatusOr<store::PruneProgress> DropVersions(store::File& file, const DropOrder& order,
                                                  Pause pause);

// How much to give back, and what to do where that cannot be.
struct ThinRequest {
  uint64_t wanted_bytes = 0;  // as few versions go as give back that much,
  uint64_t needed_bytes = 0;  // or, if all give back less, at least this; else:
  enum class IfLess : uint8_t { kDropNone, kDropAll } if_less = IfLess::kDropNone;
  std::string rule;
};

struct Thinned {
  int64_t versions = 0;
  uint64_t freed_bytes = 0;
};

// Drops the oldest versions without a tag that the head does not need; never the newest.
absl::StatusOr<Thinned> ThinHistory(store::File& file, const ThinRequest& request, Pause pause);

// "1-8, 10": `versions` rise.
std::string DescribeVersions(const std::vector<store::VersionNumber>& versions);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HISTORY_THINNING_H_
