#include "onion_store/jobs/estimate_job.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "onion_store/history_names.h"
#include "onion_store/history_sizes.h"

namespace h5mirror::store {
namespace {

constexpr size_t kStepRows = 4096;
constexpr size_t kVersionRows = 4096;

// A segment that a prune removes, once its live records are elsewhere.
struct Rewritten {
  uint64_t live_bytes = 0;
  uint64_t size_bytes = 0;
};

// In the order of a prune. A prune leaves out segments for whose copies there is no room.
uint64_t FreedByRewriting(std::vector<Rewritten> segments, uint64_t free_bytes) {
  std::sort(segments.begin(), segments.end(),
            [](const Rewritten& a, const Rewritten& b) { return a.live_bytes < b.live_bytes; });
  uint64_t freed_bytes = 0;
  for (const Rewritten& segment : segments) {
    if (segment.live_bytes > RoomToCopy(free_bytes + freed_bytes)) break;
    freed_bytes += segment.size_bytes - segment.live_bytes;
  }
  return freed_bytes;
}

}  // namespace

EstimateJobImpl::EstimateJobImpl(std::shared_ptr<EstimateSource> file,
                                 std::shared_ptr<VersionIndex> index,
                                 std::shared_ptr<PageSegments> pages, int64_t newest_generation,
                                 std::vector<std::vector<VersionNumber>> plans)
    : file_(std::move(file)),
      index_(std::move(index)),
      pages_(std::move(pages)),
      newest_generation_(newest_generation),
      doomed_(std::move(plans)),
      charge_(file_->files().budget()) {}

absl::StatusOr<bool> EstimateJobImpl::Step() {
  H5M_RETURN_IF_ERROR(file_->dead());
  if (plans_.empty()) return LoadVersions();
  if (blocks_ == nullptr) {
    H5M_ASSIGN_OR_RETURN(generation_, index_->NextGenerationWithPages(generation_));
    if (generation_ == 0) {
      H5M_RETURN_IF_ERROR(AddUp());
      return true;
    }
    blocks_ = std::make_unique<PageBlocks>(*index_, generation_);
  }
  H5M_ASSIGN_OR_RETURN(const PageBlocks::Found found, blocks_->Next(kStepRows));
  Charge(blocks_->rows().capacity() * sizeof(PageRun));
  if (found == PageBlocks::Found::kBlock) TakeBlock();
  if (found == PageBlocks::Found::kEnd) blocks_ = nullptr;
  return false;
}

absl::StatusOr<bool> EstimateJobImpl::LoadVersions() {
  const VersionNumber after = versions_.empty() ? 0 : versions_.back().version;
  H5M_ASSIGN_OR_RETURN(const bool more, index_->ScanVersions(kVersionRows, after, &versions_));
  if (more) return false;
  for (const std::vector<VersionNumber>& doomed : doomed_) {
    plans_.emplace_back(versions_, doomed, file_->files().page_size_bytes());
  }
  Charge(0);
  if (!plans_.empty()) return false;
  return true;  // Nothing was asked.
}

void EstimateJobImpl::Charge(size_t rows_bytes) {
  size_t bytes = rows_bytes + versions_.capacity() * sizeof(VersionSize);
  for (const PlannedPrune& plan : plans_) bytes += plan.memory_bytes();
  charge_.Set(static_cast<int64_t>(bytes));
}

void EstimateJobImpl::TakeBlock() {
  for (PlannedPrune& plan : plans_) plan.BeginBlock(blocks_->first_page());
  for (const PageRun& run : blocks_->rows()) {
    auto after = std::upper_bound(
        versions_.begin(), versions_.end(), run.version,
        [](VersionNumber number, const VersionSize& version) { return number < version.version; });
    std::optional<size_t> at;
    bool own = false;
    if (after != versions_.begin() && std::prev(after)->generation == generation_) {
      at = static_cast<size_t>(std::prev(after) - versions_.begin());
      own = std::prev(after)->version == run.version;
    }
    const uint64_t bytes = pages_->DiskBytes(run);
    for (PlannedPrune& plan : plans_) plan.Take(run, at, own, bytes);
  }
}

absl::Status EstimateJobImpl::AddUp() {
  freed_bytes_.assign(plans_.size(), 0);
  EnvTree& tree = file_->files().tree();
  H5M_ASSIGN_OR_RETURN(const uint64_t free_bytes, FreeBytesOf(tree));
  std::vector<std::vector<Rewritten>> rewritten(plans_.size());
  H5M_ASSIGN_OR_RETURN(const auto entries, tree.List(file_->files().directory()));
  for (const DirectoryEntry& entry : entries) {
    const std::string name = file_->files().HistoryName(entry.name);
    if (const auto number = NumberAfter(entry.name, "pages-")) {
      const auto stat = tree.Stat(name);
      if (!stat.ok()) continue;  // A prune has just removed it.
      const auto size = static_cast<uint64_t>(stat->size_bytes);
      for (size_t i = 0; i < plans_.size(); ++i) {
        const uint64_t live = plans_[i].live_bytes(static_cast<uint64_t>(*number));
        if (IsDeadEnough(size, live)) rewritten[i].push_back({live, size});
      }
    } else if (const auto generation = GenerationOfEntry(entry.name);
               generation.has_value() && *generation < newest_generation_) {
      const uint64_t bytes = DataBytes(tree, name);
      for (size_t i = 0; i < plans_.size(); ++i) {
        if (!plans_[i].RetainsGeneration(*generation)) freed_bytes_[i] += bytes;
      }
    }
  }
  for (size_t i = 0; i < plans_.size(); ++i) {
    freed_bytes_[i] += FreedByRewriting(std::move(rewritten[i]), free_bytes);
  }
  return absl::OkStatus();
}

}  // namespace h5mirror::store
