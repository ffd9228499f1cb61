#include "onion_store/file/cuts/change_log.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace h5mirror::store {

void ChangeLog::Start(CutNumber newest) {
  Stop();
  started_ = true;
  start_ = newest;
}

void ChangeLog::Stop() {
  started_ = false;
  entries_.clear();
  extent_count_ = 0;
}

void ChangeLog::Follow(CutNumber newest) {
  unasked_until_.reset();
  extents_max_ = kExtentsMax;
  if (!started_) Start(newest);
}

void ChangeLog::Expect(CutNumber newest, absl::Time now) {
  unasked_until_ = now + kReturnMax;
  extents_max_ = kExtentsUnasked;
  Start(newest);
}

void ChangeLog::AddLayer(CutNumber cut, const CutLayer& layer, uint64_t end_bytes, Env& clock) {
  if (!started_) return;
  if (unasked_until_.has_value() && clock.Now() > *unasked_until_) return Stop();
  // A layer that did not fit into memory would have to be read back.
  if (layer.begins_generation || layer.data.is_spilled()) return AddWhole(cut);
  ExtentSet changed = layer.data.direct();
  changed.Unbound();
  for (uint64_t at = 0;;) {
    const auto staged = layer.data.NextStaged(at);
    if (!staged.ok()) return AddWhole(cut);
    if (!staged->has_value()) break;
    changed.Add(**staged);
    at = (*staged)->end();
    if (changed.extent_count() > extents_max_) return AddWhole(cut);
  }
  if (layer.data.truncated_to() < end_bytes) {
    changed.Add({layer.data.truncated_to(), end_bytes - layer.data.truncated_to()});
  }
  Add(cut, std::move(changed));
}

void ChangeLog::Add(CutNumber cut, ExtentSet changed) {
  extent_count_ += changed.extent_count();
  entries_.push_back({cut, cut, std::move(changed)});
  MakeRoom();
}

void ChangeLog::MakeRoom() {
  while (extent_count_ + entries_.size() > extents_max_ && entries_.size() > 1) {
    Entry oldest = std::move(entries_.front());
    entries_.pop_front();
    Entry& next = entries_.front();
    extent_count_ -= oldest.changed.extent_count() + next.changed.extent_count();
    next.first_cut = oldest.first_cut;
    next.changed.AddAll(oldest.changed);
    extent_count_ += next.changed.extent_count();
  }
  // One cut alone exceeds the bound.
  if (extent_count_ + entries_.size() > extents_max_) Start(entries_.back().cut);
}

absl::StatusOr<std::vector<Extent>> ChangeLog::Between(CutNumber from, CutNumber to) const {
  // A crash has discarded any number between the start and the first cut after it.
  const CutNumber first = entries_.empty() ? start_ : entries_.front().first_cut;
  const CutNumber newest = entries_.empty() ? start_ : entries_.back().cut;
  const bool is_known = started_ && (from == start_ || (from >= first && from <= newest));
  if (!is_known || to > newest) {
    return absl::OutOfRangeError(
        StrCat("what changed between the cuts ", from, " and ", to, " is not known"));
  }
  ExtentSet changed;
  for (const Entry& entry : entries_) {
    if (entry.cut > from && entry.first_cut <= to) changed.AddAll(entry.changed);
  }
  return changed.ToVector();
}

}  // namespace h5mirror::store
