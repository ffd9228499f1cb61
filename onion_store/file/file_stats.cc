// What versions cost, and what dropping some would give back.
#include <algorithm>
#include <bitset>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/disk/coding.h"
#include "onion_store/file/file_impl.h"
#include "onion_store/history_names.h"
#include "onion_store/history_sizes.h"
#include "onion_store/pages/page_blocks.h"

namespace h5mirror::store {
namespace {

constexpr size_t kStepRows = 4096;
constexpr size_t kVersionRows = 4096;

using BlockPages = std::bitset<kBlockPages>;

// Goes through the rows of pages as a prune would, and counts what it would leave.
class PlannedPrune {
 public:
  // `versions` are all, rising; `doomed` rises too.
  PlannedPrune(const std::vector<VersionSize>& versions, const std::vector<VersionNumber>& doomed,
               uint32_t page_size_bytes)
      : kept_(versions.size(), kNone), limit_pages_(versions.size(), 0) {
    auto next = doomed.begin();
    for (size_t i = 0; i < versions.size(); ++i) {
      const VersionSize& version = versions[i];
      const bool follows = i > 0 && versions[i - 1].generation == version.generation;
      while (next != doomed.end() && *next < version.version) ++next;
      const bool goes = next != doomed.end() && *next == version.version;
      limit_pages_[i] = follows ? limit_pages_[i - 1] : 0;
      if (goes) {
        kept_[i] = follows ? kept_[i - 1] : kNone;
        continue;
      }
      kept_[i] = static_cast<int32_t>(i);
      generations_.insert(version.generation);
      limit_pages_[i] =
          std::max(limit_pages_[i], RoundUp(version.size_bytes, page_size_bytes) / page_size_bytes);
    }
  }

  void BeginBlock(uint64_t first_page) {
    first_page_ = first_page;
    target_ = kNone;
  }
  // The next row of the block, by version and level. `at`: the newest version of its generation
  // that exists and is not newer; nullopt: none. `own`: it is the row's.
  // docs/design/032-pruning.md.
  void Take(const PageRun& run, std::optional<size_t> at, bool own, uint64_t disk_bytes) {
    const int32_t target = at.has_value() ? kept_[*at] : kNone;
    if (target == kNone) return;
    if (target != target_) held_.reset();
    target_ = target;
    const BlockPages pages = PagesOf(run);
    const bool stays = own && target == static_cast<int32_t>(*at);
    if (!stays && run.page >= limit_pages_[static_cast<size_t>(target)]) return;
    if (!stays && (pages & ~held_).none()) return;
    held_ |= pages;
    if (disk_bytes > 0) live_bytes_[run.segment] += disk_bytes;
  }

  uint64_t live_bytes(uint64_t segment) const {
    const auto found = live_bytes_.find(segment);
    return found == live_bytes_.end() ? 0 : found->second;
  }
  bool KeepsGeneration(int64_t generation) const { return generations_.contains(generation); }
  size_t memory_bytes() const { return kept_.size() * (sizeof(int32_t) + sizeof(uint64_t)); }

 private:
  static constexpr int32_t kNone = -1;

  BlockPages PagesOf(const PageRun& run) const {
    const uint64_t first = run.page - first_page_;
    const uint64_t count = std::min(run.page_count(), kBlockPages - first);
    return (~BlockPages() >> (kBlockPages - count)) << first;
  }

  std::vector<int32_t> kept_;                // by version: the kept one that gets its rows
  std::vector<uint64_t> limit_pages_;        // by version: no kept one up to it reaches further
  std::set<int64_t> generations_;            // that a kept version is of
  std::map<uint64_t, uint64_t> live_bytes_;  // by segment
  uint64_t first_page_ = 0;
  int32_t target_ = kNone;
  BlockPages held_;  // by rows of target_
};

// A segment that a prune removes, once its live records are elsewhere.
struct Rewritten {
  uint64_t live_bytes = 0;
  uint64_t size_bytes = 0;
};

// In the order of a prune, which leaves out what there is no room for.
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

class EstimateJobImpl final : public EstimateJob {
 public:
  EstimateJobImpl(std::shared_ptr<EstimateSource> file, std::shared_ptr<VersionIndex> index,
                  std::shared_ptr<PageSegments> pages, int64_t newest_generation,
                  std::vector<std::vector<VersionNumber>> plans)
      : file_(std::move(file)),
        index_(std::move(index)),
        pages_(std::move(pages)),
        newest_generation_(newest_generation),
        doomed_(std::move(plans)),
        charge_(file_->files().budget()) {}

  absl::StatusOr<bool> Step() override {
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

  const std::vector<uint64_t>& freed_bytes() const override { return freed_bytes_; }

 private:
  absl::StatusOr<bool> LoadVersions() {
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

  void Charge(size_t rows_bytes) {
    size_t bytes = rows_bytes + versions_.capacity() * sizeof(VersionSize);
    for (const PlannedPrune& plan : plans_) bytes += plan.memory_bytes();
    charge_.Set(static_cast<int64_t>(bytes));
  }

  void TakeBlock() {
    for (PlannedPrune& plan : plans_) plan.BeginBlock(blocks_->first_page());
    for (const PageRun& run : blocks_->rows()) {
      auto after = std::upper_bound(versions_.begin(), versions_.end(), run.version,
                                    [](VersionNumber number, const VersionSize& version) {
                                      return number < version.version;
                                    });
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

  absl::Status AddUp() {
    freed_bytes_.assign(plans_.size(), 0);
    EnvTree& tree = file_->files().tree();
    H5M_ASSIGN_OR_RETURN(const uint64_t free_bytes, tree.FreeBytes());
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
          if (!plans_[i].KeepsGeneration(*generation)) freed_bytes_[i] += bytes;
        }
      }
    }
    for (size_t i = 0; i < plans_.size(); ++i) {
      freed_bytes_[i] += FreedByRewriting(std::move(rewritten[i]), free_bytes);
    }
    return absl::OkStatus();
  }

  const std::shared_ptr<EstimateSource> file_;
  const std::shared_ptr<VersionIndex> index_;
  const std::shared_ptr<PageSegments> pages_;
  const int64_t newest_generation_;
  const std::vector<std::vector<VersionNumber>> doomed_;  // by plan, rising
  std::vector<VersionSize> versions_;                     // rising
  std::vector<PlannedPrune> plans_;                       // once all versions are known
  std::unique_ptr<PageBlocks> blocks_;
  int64_t generation_ = 0;  // of blocks_, or the last one that was done
  std::vector<uint64_t> freed_bytes_;
  MemoryCharge charge_;
};

absl::StatusOr<std::unique_ptr<EstimateJob>> FileImpl::StartEstimate(
    const std::vector<std::vector<VersionNumber>>& plans) {
  H5M_ASSIGN_OR_RETURN(const VersionNumber needed, OldestNeeded());
  H5M_ASSIGN_OR_RETURN(const auto index, Index());
  if (index == nullptr) return absl::NotFoundError(StrCat(files_.name(), " has no version yet"));
  std::vector<std::vector<VersionNumber>> rising;
  for (std::vector<VersionNumber> plan : plans) {
    plan.erase(std::remove_if(plan.begin(), plan.end(),
                              [needed](VersionNumber version) { return version >= needed; }),
               plan.end());
    std::sort(plan.begin(), plan.end());
    rising.push_back(std::move(plan));
  }
  absl::MutexLock lock(&mutex_);
  return std::make_unique<EstimateJobImpl>(shared_from_this(), index, Pages(), row_.generation,
                                           std::move(rising));
}

absl::StatusOr<uint64_t> FileImpl::SavedBytes(const VersionInfo& version) {
  H5M_ASSIGN_OR_RETURN(const auto index, Index());
  if (index == nullptr) return uint64_t{0};
  std::shared_ptr<PageSegments> pages;
  {
    absl::MutexLock lock(&mutex_);
    pages = Pages();
  }
  uint64_t bytes = 0;
  PagesCursor cursor{version.generation, -1, 0, version.version};
  for (bool more = true; more;) {
    std::vector<PageRun> runs;
    H5M_ASSIGN_OR_RETURN(more, index->ScanVersionRows(kStepRows, &cursor, &runs));
    for (const PageRun& run : runs) bytes += pages->DiskBytes(run);
  }
  return bytes;
}

bool FileImpl::HistoryStopped() {
  if (!context_->history_stops.Has(files_.name())) return false;
  absl::MutexLock lock(&mutex_);
  return newest_.version != 0;
}

}  // namespace h5mirror::store
