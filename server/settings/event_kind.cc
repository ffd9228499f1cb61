#include "server/settings/event_kind.h"

#include <iterator>
#include <vector>

#include "base/strings.h"
#include "server/settings/config.h"

namespace h5mirror::server {
namespace {

// In the order of EventKind.
constexpr std::string_view kNames[] = {"writer_lost",     "diverged",
                                       "disk_low",        "verify_failed",
                                       "history_stopped", "quota_near",
                                       "cell_taken_over", "cell_moved",
                                       "server_drained",  "server_evicted",
                                       "server_fenced",   "archive_failed",
                                       "archive_well",    "test"};

constexpr size_t kNamed = std::size(kNames) - 1;  // all but the last
static_assert(kNamed == static_cast<size_t>(EventKind::kTest));

}  // namespace

std::string_view EventName(EventKind kind) { return kNames[static_cast<size_t>(kind)]; }

absl::StatusOr<EventKind> ParseEventKind(std::string_view name) {
  const std::vector<std::string_view> names(kNames, kNames + kNamed);
  for (size_t i = 0; i < kNamed; ++i) {
    if (names[i] == name) return static_cast<EventKind>(i);
  }
  std::string all;
  for (const std::string_view each : names) StrAppend(&all, all.empty() ? "" : ", ", each);
  return absl::InvalidArgumentError(
      StrCat("is no event; ", SuggestKey(name, names, StrCat("there are ", all))));
}

}  // namespace h5mirror::server
