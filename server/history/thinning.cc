#include "server/history/thinning.h"

#include <algorithm>
#include <utility>

#include "base/human.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "spdlog/spdlog.h"

namespace h5mirror::server {
namespace {

constexpr size_t kVersionsAtOnce = 1000;
// Plans that one pass over the rows estimates.
constexpr size_t kPlansAtOnce = 16;
// Versions of one log line.
constexpr size_t kLoggedVersions = 500;

// The versions that thinning may drop, oldest first. Those that a group needs stay.
absl::StatusOr<std::vector<store::VersionNumber>> Untagged(store::File& file, Pause pause) {
  H5M_ASSIGN_OR_RETURN(const store::VersionNumber needed, file.OldestNeeded());
  std::vector<store::VersionNumber> untagged;
  bool newest = true;
  store::GroupGuard guard;
  for (store::VersionRange range;;) {
    H5M_RETURN_IF_ERROR(pause());
    H5M_ASSIGN_OR_RETURN(const auto versions, file.ListVersions(range, kVersionsAtOnce));
    if (versions.empty()) break;
    range.before = versions.back().version;
    for (const store::VersionInfo& version : versions) {
      const bool is_needed = guard.Keeps(version) || version.version >= needed;
      const bool may_go = !newest && !is_needed && version.tags.empty();
      if (may_go) untagged.push_back(version.version);
      newest = false;
    }
  }
  std::reverse(untagged.begin(), untagged.end());
  return untagged;
}

// How many of `candidates`, from the first on, must go.
class Search {
 public:
  Search(store::File& file, const std::vector<store::VersionNumber>& candidates, Pause pause)
      : file_(file), candidates_(candidates), pause_(pause) {}

  absl::StatusOr<size_t> Run(const ThinRequest& request) {
    H5M_ASSIGN_OR_RETURN(const std::vector<uint64_t> ends, Freed({0, candidates_.size()}));
    left_bytes_ = ends[0];
    if (ends[0] >= request.wanted_bytes) return size_t{0};
    if (ends[1] < request.wanted_bytes) {
      const bool all =
          ends[1] >= request.needed_bytes || request.if_less == ThinRequest::IfLess::kDropAll;
      return all ? candidates_.size() : size_t{0};
    }
    // `low` are too few, `high` are enough.
    for (size_t low = 0, high = candidates_.size();;) {
      const std::vector<size_t> counts = Between(low, high);
      if (counts.empty()) return high;
      H5M_ASSIGN_OR_RETURN(const std::vector<uint64_t> freed, Freed(counts));
      for (size_t i = 0; i < counts.size() && counts[i] < high; ++i) {
        (freed[i] >= request.wanted_bytes ? high : low) = counts[i];
      }
    }
  }

  // Bytes that earlier prunes have left to give back.
  uint64_t left_bytes() const { return left_bytes_; }

 private:
  // At most kPlansAtOnce numbers in (low, high), evenly, rising.
  static std::vector<size_t> Between(size_t low, size_t high) {
    std::vector<size_t> counts;
    for (size_t i = 1; i <= kPlansAtOnce; ++i) {
      const size_t count = low + (high - low) * i / (kPlansAtOnce + 1);
      if (count > low && count < high && (counts.empty() || count > counts.back())) {
        counts.push_back(count);
      }
    }
    // With few of them the division skips some.
    if (counts.empty() && high - low > 1) counts.push_back(low + 1);
    return counts;
  }

  absl::StatusOr<std::vector<uint64_t>> Freed(const std::vector<size_t>& counts) {
    std::vector<std::vector<store::VersionNumber>> plans;
    plans.reserve(counts.size());
    for (const size_t count : counts) {
      plans.emplace_back(candidates_.begin(),
                         candidates_.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return EstimatePrunes(file_, plans, pause_);
  }

  store::File& file_;
  const std::vector<store::VersionNumber>& candidates_;
  const Pause pause_;
  uint64_t left_bytes_ = 0;
};

void LogDrops(const std::string& name, const DropOrder& order) {
  for (size_t i = 0; i < order.versions.size(); i += kLoggedVersions) {
    const auto begin = order.versions.begin() + static_cast<std::ptrdiff_t>(i);
    const size_t count = std::min(kLoggedVersions, order.versions.size() - i);
    spdlog::info("history: file={} drops versions {} by {}", Quoted(name),
                 DescribeVersions({begin, begin + static_cast<std::ptrdiff_t>(count)}), order.rule);
  }
}

}  // namespace

std::string DescribeVersions(const std::vector<store::VersionNumber>& versions) {
  std::string text;
  for (size_t i = 0; i < versions.size();) {
    size_t last = i;
    while (last + 1 < versions.size() && versions[last + 1] == versions[last] + 1) ++last;
    StrAppend(&text, text.empty() ? "" : ", ", versions[i]);
    if (last > i) StrAppend(&text, "-", versions[last]);
    i = last + 1;
  }
  return text;
}

absl::StatusOr<std::vector<uint64_t>> EstimatePrunes(
    store::File& file, const std::vector<std::vector<store::VersionNumber>>& plans, Pause pause) {
  H5M_ASSIGN_OR_RETURN(const auto job, file.StartEstimate(plans));
  for (bool done = false; !done;) {
    H5M_RETURN_IF_ERROR(pause());
    H5M_ASSIGN_OR_RETURN(done, job->Step());
  }
  return job->freed_bytes();
}

absl::StatusOr<store::PruneProgress> DropVersions(store::File& file, const DropOrder& order,
                                                  Pause pause) {
  H5M_ASSIGN_OR_RETURN(const auto job, file.StartPrune(order.versions));
  LogDrops(file.name(), order);
  for (;;) {
    H5M_RETURN_IF_ERROR(pause());
    H5M_ASSIGN_OR_RETURN(const store::PruneProgress progress, job->Step());
    if (!progress.done) continue;
    spdlog::info("history: file={} dropped {} versions, {} given back", Quoted(file.name()),
                 progress.versions_dropped, HumanBytes(progress.freed_bytes));
    if (!progress.left.empty()) {
      spdlog::warn("history: file={} left some space as it is: {}", Quoted(file.name()),
                   progress.left);
    }
    return progress;
  }
}

absl::StatusOr<uint64_t> EstimateThinning(store::File& file, Pause pause) {
  H5M_ASSIGN_OR_RETURN(std::vector<store::VersionNumber> candidates, Untagged(file, pause));
  H5M_ASSIGN_OR_RETURN(const std::vector<uint64_t> freed,
                       EstimatePrunes(file, {std::move(candidates)}, pause));
  return freed[0];
}

absl::StatusOr<Thinned> ThinHistory(store::File& file, const ThinRequest& request, Pause pause) {
  H5M_ASSIGN_OR_RETURN(std::vector<store::VersionNumber> candidates, Untagged(file, pause));
  Search search(file, candidates, pause);
  H5M_ASSIGN_OR_RETURN(const size_t count, search.Run(request));
  if (count == 0 && search.left_bytes() == 0) return Thinned{};
  candidates.resize(count);
  H5M_ASSIGN_OR_RETURN(const store::PruneProgress progress,
                       DropVersions(file, {std::move(candidates), request.rule}, pause));
  return Thinned{progress.versions_dropped, progress.freed_bytes};
}

}  // namespace h5mirror::server
