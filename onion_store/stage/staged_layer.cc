#include "onion_store/stage/staged_layer.h"

#include <algorithm>
#include <iterator>

#include "base/status_macros.h"

namespace h5mirror::store {
namespace {
constexpr uint64_t kEntryMemoryBytes = 32;  // of a btree node, with its share of slack
constexpr size_t kSpillEntriesMin = 2048;   // smaller ones are not worth a file
constexpr size_t kRunsMax = 8;
constexpr uint64_t kMergeWindowBytes = 1 << 20;

// Appends the parts of `whole` outside `cover`.
void Subtract(std::vector<Extent>* rest, Extent whole, Extent cover) {
  if (whole.offset < cover.offset) {
    rest->push_back({whole.offset, cover.offset - whole.offset});
  }
  if (cover.end() < whole.end()) rest->push_back({cover.end(), whole.end() - cover.end()});
}

Extent Clip(Extent extent, Extent to) {
  uint64_t from = std::max(extent.offset, to.offset), end = std::min(extent.end(), to.end());
  return {from, end > from ? end - from : 0};
}
}  // namespace

absl::Status StagedLayer::Put(Extent extent, StageLocation location) {
  if (extent.length == 0) return absl::OkStatus();
  Insert(extent, location);
  Recount();
  if (map_.size() >= kSpillEntriesMin && budget_.should_spill()) return Spill();
  return absl::OkStatus();
}

void StagedLayer::Insert(Extent extent, StageLocation location) {
  Erase(extent);
  staged_bytes_ += extent.length;
  auto after = map_.lower_bound(extent.offset);
  if (after != map_.begin()) {  // Goes on where its neighbour ends, here and in the stage?
    auto before = std::prev(after);
    if (before->second.end == extent.offset &&
        before->second.location + (extent.offset - before->first) == location) {
      before->second.end = extent.end();
      return;
    }
  }
  map_.insert(after, {extent.offset, Target{extent.end(), location}});
}

void StagedLayer::Erase(Extent extent) {
  auto at = map_.lower_bound(extent.offset);
  if (at != map_.begin() && std::prev(at)->second.end > extent.offset) --at;
  while (at != map_.end() && at->first < extent.end()) {
    uint64_t from = at->first;
    Target target = at->second;
    staged_bytes_ -= Clip({from, target.end - from}, extent).length;
    at = map_.erase(at);
    bool kept_some = false;
    if (from < extent.offset) {
      map_[from] = {extent.offset, target.location};
      kept_some = true;
    }
    if (target.end > extent.end()) {
      map_[extent.end()] = {target.end, target.location + (extent.end() - from)};
      kept_some = true;
    }
    if (kept_some) at = map_.lower_bound(extent.offset);  // Insertion moved the iterators.
  }
}

void StagedLayer::AddDirect(Extent extent) {
  direct_.Add(extent);
  direct_end_max_ = std::max(direct_end_max_, extent.end());
}

absl::Status StagedLayer::Truncate(uint64_t size_bytes) {
  truncated_to_ = std::min(truncated_to_, size_bytes);
  Erase({size_bytes, UINT64_MAX - size_bytes});
  for (Run& run : runs_) run.limit = std::min(run.limit, size_bytes);
  direct_.TruncateTo(size_bytes);
  Recount();
  return absl::OkStatus();
}

absl::Status StagedLayer::Absorb(const StagedLayer& newer) {
  if (newer.truncated_to_ != kNotTruncated) {
    H5M_RETURN_IF_ERROR(Truncate(newer.truncated_to_));
  }
  direct_.AddAll(newer.direct_);
  direct_end_max_ = std::max(direct_end_max_, newer.direct_end_max_);
  if (!newer.runs_.empty()) {  // Its runs must lie over this layer's map.
    if (!map_.empty()) H5M_RETURN_IF_ERROR(Spill());
    runs_.insert(runs_.end(), newer.runs_.begin(), newer.runs_.end());
    staged_bytes_ += newer.staged_bytes_;
    map_ = newer.map_;
    Recount();
    return runs_.size() > kRunsMax ? MergeRuns() : absl::OkStatus();
  }
  for (const auto& [offset, target] : newer.map_) {
    H5M_RETURN_IF_ERROR(Put({offset, target.end - offset}, target.location));
  }
  return absl::OkStatus();
}

absl::Status StagedLayer::Spill() {
  auto at = map_.begin();
  RunFile::Source next = [&]() -> absl::StatusOr<std::optional<StagedEntry>> {
    if (at == map_.end()) return std::nullopt;
    StagedEntry entry{at->first, at->second.end, at->second.location};
    ++at;
    return entry;
  };
  H5M_ASSIGN_OR_RETURN(auto run, RunFile::Write(tree_, directory_, next));
  runs_.push_back({std::move(run), UINT64_MAX});
  map_.clear();
  Recount();
  return runs_.size() > kRunsMax ? MergeRuns() : absl::OkStatus();
}

absl::Status StagedLayer::MergeRuns() {
  // Resolves window by window over all runs. map_ is empty, so the runs are the newest entries.
  Map map;
  map.swap(map_);
  std::vector<Piece> pieces;
  size_t next_piece = 0;
  uint64_t cursor = 0;
  RunFile::Source next = [&]() -> absl::StatusOr<std::optional<StagedEntry>> {
    while (next_piece == pieces.size()) {
      H5M_ASSIGN_OR_RETURN(std::optional<Extent> staged, NextStaged(cursor));
      if (!staged) return std::nullopt;
      Extent window{staged->offset, kMergeWindowBytes};
      std::vector<Extent> wanted{window};
      pieces.clear();
      next_piece = 0;
      for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
        H5M_RETURN_IF_ERROR(ResolveRun(*run, &wanted, &pieces));
      }
      std::sort(pieces.begin(), pieces.end(),
                [](const Piece& a, const Piece& b) { return a.extent.offset < b.extent.offset; });
      cursor = window.end();
    }
    const Piece& piece = pieces[next_piece++];
    return StagedEntry{piece.extent.offset, piece.extent.end(), piece.location};
  };
  auto merged = RunFile::Write(tree_, directory_, next);
  map_.swap(map);
  H5M_RETURN_IF_ERROR(merged.status());
  runs_.clear();
  runs_.push_back({*std::move(merged), UINT64_MAX});
  Recount();
  return absl::OkStatus();
}

absl::Status StagedLayer::ResolveRun(const Run& run, std::vector<Extent>* wanted,
                                     std::vector<Piece>* found) const {
  std::vector<Extent> rest;
  for (const Extent& want : *wanted) {
    H5M_ASSIGN_OR_RETURN(std::vector<StagedEntry> entries, run.file->Find(want));
    uint64_t from = want.offset;
    for (const StagedEntry& entry : entries) {
      uint64_t end = std::min(entry.end, run.limit);
      Extent part = Clip({entry.offset, end > entry.offset ? end - entry.offset : 0}, want);
      if (part.length == 0) continue;
      if (part.offset > from) rest.push_back({from, part.offset - from});
      found->push_back(
          {part, Piece::Source::kStage, entry.location + (part.offset - entry.offset)});
      from = part.end();
    }
    if (from < want.end()) rest.push_back({from, want.end() - from});
  }
  wanted->swap(rest);
  return absl::OkStatus();
}

absl::Status StagedLayer::Resolve(std::vector<Extent>* wanted, std::vector<Piece>* found) const {
  std::vector<Extent> rest;
  for (const Extent& want : *wanted) ResolveMap(want, &rest, found);
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run) {
    if (!rest.empty()) H5M_RETURN_IF_ERROR(ResolveRun(*run, &rest, found));
  }
  wanted->clear();
  for (const Extent& want : rest) {
    for (const Extent& part : ResolveDirect(want, found)) {
      const Extent kept = ResolveTruncated(part, found);
      if (kept.length > 0) wanted->push_back(kept);
    }
  }
  return absl::OkStatus();
}

void StagedLayer::ResolveMap(Extent want, std::vector<Extent>* rest,
                             std::vector<Piece>* found) const {
  uint64_t from = want.offset;
  auto at = map_.upper_bound(want.offset);
  if (at != map_.begin() && std::prev(at)->second.end > want.offset) --at;
  for (; at != map_.end() && at->first < want.end(); ++at) {
    Extent part = Clip({at->first, at->second.end - at->first}, want);
    if (part.offset > from) rest->push_back({from, part.offset - from});
    found->push_back(
        {part, Piece::Source::kStage, at->second.location + (part.offset - at->first)});
    from = part.end();
  }
  if (from < want.end()) rest->push_back({from, want.end() - from});
}

std::vector<Extent> StagedLayer::ResolveDirect(Extent want, std::vector<Piece>* found) const {
  std::vector<Extent> below{want};
  for (const Extent& part : direct_.Intersection(want)) {
    found->push_back({part, Piece::Source::kHead, 0});
    Extent last = below.back();  // Parts come in order: only the last can hold the byte.
    below.pop_back();
    Subtract(&below, last, part);
    if (below.empty()) break;
  }
  return below;
}

Extent StagedLayer::ResolveTruncated(Extent want, std::vector<Piece>* found) const {
  if (want.end() <= truncated_to_) return want;
  const uint64_t from = std::max(want.offset, truncated_to_);
  found->push_back({{from, want.end() - from}, Piece::Source::kZeros, 0});
  return {want.offset, from - want.offset};
}

absl::StatusOr<std::optional<Extent>> StagedLayer::NextStaged(uint64_t offset) const {
  std::optional<Extent> first;
  auto take = [&](uint64_t from, uint64_t end) {
    from = std::max(from, offset);
    if (from < end && (!first || from < first->offset)) first = Extent{from, end - from};
  };
  auto at = map_.upper_bound(offset);
  if (at != map_.begin() && std::prev(at)->second.end > offset) --at;
  if (at != map_.end()) take(at->first, at->second.end);
  for (const Run& run : runs_) {
    H5M_ASSIGN_OR_RETURN(std::optional<StagedEntry> entry, run.file->NextAfter(offset));
    if (entry) take(entry->offset, std::min(entry->end, run.limit));
  }
  return first;
}

void StagedLayer::Recount() {
  uint64_t bytes = map_.size() * kEntryMemoryBytes + direct_.extent_count() * kEntryMemoryBytes;
  for (const Run& run : runs_) bytes += run.file->memory_bytes();
  charge_.Set(bytes);
}

}  // namespace h5mirror::store
