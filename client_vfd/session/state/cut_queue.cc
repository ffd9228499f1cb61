#include "client_vfd/session/state/cut_queue.h"

#include <algorithm>
#include <utility>

namespace h5mirror::vfd {
namespace {

// Sets of cuts that await durability; beyond it the two oldest are kept as one.
constexpr size_t kUnackedMax = 64;
// Closed cuts that wait to be sent; beyond it no ticks are made.
constexpr size_t kClosedMax = 256;

// A copy is sent in pieces of at most the sender's frame. Each piece keeps the rest of the copy
// alive.
constexpr uint64_t kSavedPieceBytes = 256 << 10;

bool Overlap(const Extent& a, const Extent& b) { return a.offset < b.end() && b.offset < a.end(); }

}  // namespace

void Changes::Absorb(const Changes& other) {
  if (other.truncate) truncate = std::min(truncate.value_or(*other.truncate), *other.truncate);
  extents.AddAll(other.extents);
}

void CutQueue::Truncate(uint64_t size_bytes) {
  Changes& changes = open_.changes;
  changes.extents.TruncateTo(size_bytes);
  changes.truncate = std::min(changes.truncate.value_or(size_bytes), size_bytes);
}

CutQueue::Cut CutQueue::NewCut() const {
  Cut cut;
  cut.changes.extents = ExtentSet(extents_max_);
  return cut;
}

Changes CutQueue::NoChanges() const {
  Changes none;
  if (extents_max_ == kExact) none.extents.Unbound();
  return none;
}

void CutQueue::Close(CutEnd end) {
  // While nothing can be sent, a program that flushes often must not cost memory for each cut.
  if (closed_.size() >= kClosedMax && end.kind == CutKind::kTick) return;
  open_.end = std::move(end);
  closed_.push_back(std::move(open_));
  // The closed cut's ranges keep their gaps. A closed gap would be read as the file is now, and may
  // hold newer bytes than the cut.
  closed_.back().changes.extents.Unbound();
  open_ = NewCut();
  if (!reading_.empty()) reading_closed_ = true;
}

std::vector<Extent> CutQueue::AtRisk(Extent extent) const {
  std::vector<Extent> parts;
  for (const Cut& cut : closed_) {
    const std::vector<Extent> own = cut.changes.extents.Intersection(extent);
    parts.insert(parts.end(), own.begin(), own.end());
  }
  return parts;
}

bool CutQueue::IsBeingRead(Extent extent) const {
  if (!reading_closed_) return false;
  return std::any_of(reading_.begin(), reading_.end(),
                     [&](const Extent& piece) { return Overlap(piece, extent); });
}

void CutQueue::Save(Extent extent, std::string bytes) {
  for (Cut& cut : closed_) {
    for (const Extent& part : cut.changes.extents.Intersection(extent)) {
      for (uint64_t at = part.offset; at < part.end(); at += kSavedPieceBytes) {
        cut.saved[at] =
            bytes.substr(at - extent.offset, std::min(kSavedPieceBytes, part.end() - at));
      }
      saved_bytes_ += part.length;
    }
    cut.changes.extents.Remove(extent);
  }
}

void CutQueue::DropBeyond(Cut& cut, uint64_t size_bytes, uint64_t* saved_bytes) {
  cut.changes.extents.TruncateTo(size_bytes);
  for (auto piece = cut.saved.begin(); piece != cut.saved.end();) {
    auto& [offset, bytes] = *piece;
    const uint64_t keep =
        offset >= size_bytes ? 0 : std::min<uint64_t>(bytes.size(), size_bytes - offset);
    *saved_bytes -= bytes.size() - keep;
    bytes.resize(keep);
    piece = keep == 0 ? cut.saved.erase(piece) : std::next(piece);
  }
}

// The parts of `extent` that the cut neither reads from the file nor has a copy of.
std::vector<Extent> CutQueue::NotHeld(const Cut& cut, Extent extent) {
  ExtentSet missing;
  missing.Add(extent);
  for (const Extent& part : cut.changes.extents.Intersection(extent)) missing.Remove(part);
  auto held = cut.saved.upper_bound(extent.offset);
  if (held != cut.saved.begin()) --held;
  for (; held != cut.saved.end() && held->first < extent.end(); ++held) {
    missing.Remove({held->first, held->second.size()});
  }
  return missing.ToVector();
}

// If the joined set of ranges would be too large, the newest closed cut joins the open cut instead.
// The open cut may cover more than was written.
bool CutQueue::MergeTick() {
  const auto is_tick = [](const Cut& cut) { return cut.end.kind == CutKind::kTick; };
  const auto oldest = std::find_if(closed_.begin(), closed_.end(), is_tick);
  if (oldest == closed_.end()) return false;
  const auto next = std::next(oldest);
  const size_t count = oldest->changes.extents.extent_count() +
                       (next == closed_.end() ? 0 : next->changes.extents.extent_count());
  if (next == closed_.end() || extents_max_ == kExact || count <= extents_max_) {
    Merge(oldest);
    return true;
  }
  if (!is_tick(closed_.back())) return false;
  Merge(std::prev(closed_.end()));
  return true;
}

void CutQueue::Merge(std::deque<Cut>::iterator tick) {
  Cut old = std::move(*tick);
  const auto next = closed_.erase(tick);
  const bool into_open = next == closed_.end();
  Cut& into = into_open ? open_ : *next;
  if (into.changes.truncate) DropBeyond(old, *into.changes.truncate, &saved_bytes_);
  for (auto& [offset, bytes] : old.saved) {
    saved_bytes_ -= bytes.size();
    const Extent extent{offset, bytes.size()};
    // Bytes that were copied out, and that the next cut did not write, changed only after the next
    // cut. So the copy is the next cut's content too. (If that cut is still open, the file itself
    // is its content.)
    if (into_open) {
      into.changes.extents.Add(extent);
      continue;
    }
    for (const Extent& part : NotHeld(into, extent)) {
      into.saved[part.offset] = bytes.substr(part.offset - offset, part.length);
      saved_bytes_ += part.length;
    }
  }
  into.changes.Absorb(old.changes);
}

void CutQueue::TakeSaved(Cut& cut, uint64_t bytes_max, size_t extents_max, SendWrites* work) {
  while (!cut.saved.empty() && work->pieces.size() < extents_max && bytes_max > 0) {
    auto first = cut.saved.begin();
    const uint64_t offset = first->first;
    std::string bytes = std::move(first->second);
    cut.saved.erase(first);
    if (bytes.size() > bytes_max) {
      cut.saved[offset + bytes_max] = bytes.substr(bytes_max);
      bytes.resize(bytes_max);
    }
    bytes_max -= bytes.size();
    saved_bytes_ -= bytes.size();
    const Extent extent{offset, bytes.size()};
    sending_.extents.Add(extent);
    sent_saved_ = true;
    work->pieces.push_back({extent, std::move(bytes)});
  }
}

void CutQueue::TakeFromFile(Cut& cut, uint64_t bytes_max, size_t extents_max, SendWrites* work) {
  std::vector<Extent> taken = cut.changes.extents.Take(cursor_, bytes_max, extents_max);
  if (taken.empty()) taken = cut.changes.extents.Take(0, bytes_max, extents_max);
  if (taken.empty()) return;
  cursor_ = taken.back().end();
  for (const Extent& extent : taken) {
    sending_.extents.Add(extent);
    reading_.push_back(extent);
    work->pieces.push_back({extent, std::string()});
  }
  reading_closed_ = &cut != &open_;
}

Work CutQueue::Next(uint64_t bytes_max, size_t extents_max, uint64_t open_bytes_min) {
  const bool from_open = closed_.empty();
  Cut& cut = from_open ? open_ : closed_.front();
  if (from_open && cut.changes.extents.byte_count() < std::max<uint64_t>(open_bytes_min, 1))
    return {};
  if (cut.changes.truncate) {
    const uint64_t size_bytes = *std::exchange(cut.changes.truncate, std::nullopt);
    sending_.extents.TruncateTo(size_bytes);
    sending_.truncate = std::min(sending_.truncate.value_or(size_bytes), size_bytes);
    return SendTruncate{size_bytes};
  }
  SendWrites work;
  if (!cut.saved.empty()) {
    TakeSaved(cut, bytes_max, extents_max, &work);
  } else {
    TakeFromFile(cut, bytes_max, extents_max, &work);
  }
  if (!work.pieces.empty()) return work;
  SendBarrier barrier{++last_seq_, std::move(cut.end)};
  closed_.pop_front();
  sent_saved_ = false;
  unacked_.push_back({barrier.seq, std::exchange(sending_, NoChanges())});
  if (unacked_.size() > kUnackedMax) {
    unacked_[1].changes.Absorb(unacked_[0].changes);
    unacked_.pop_front();
  }
  return barrier;
}

void CutQueue::ForgetDurable(uint64_t seq) {
  while (!unacked_.empty() && unacked_.front().seq <= seq) unacked_.pop_front();
}

bool CutQueue::TakeBack() {
  // Bytes of a closed cut that had been handed out were not copied when they were overwritten.
  const bool unchanged = closed_.empty() || (closed_.size() == 1 && open_.changes.empty());
  const bool barrier_sent = !unacked_.empty() && unacked_.back().seq != 0;
  if (barrier_sent || sent_saved_ || !reading_.empty() || !unchanged) return false;
  Cut& from = closed_.empty() ? open_ : closed_.front();
  from.changes.Absorb(std::exchange(sending_, NoChanges()));
  cursor_ = 0;
  return true;
}

Changes CutQueue::Everything() const {
  Changes all = NotDurable();
  for (const Cut& cut : closed_) {
    all.Absorb(cut.changes);
    for (const auto& [offset, bytes] : cut.saved) all.extents.Add({offset, bytes.size()});
  }
  all.Absorb(open_.changes);
  return all;
}

void CutQueue::SendAgain() {
  Changes all = Everything();
  sending_ = NoChanges();
  unacked_.clear();
  closed_.clear();
  sent_saved_ = false;
  reading_.clear();
  saved_bytes_ = 0;
  open_ = NewCut();
  open_.changes.Absorb(all);
}

Changes CutQueue::NotDurable() const {
  Changes all = sending_;
  for (const Unacked& unacked : unacked_) all.Absorb(unacked.changes);
  return all;
}

uint64_t CutQueue::pending_bytes() const {
  return open_.changes.extents.byte_count() + saved_bytes_ + unread_bytes();
}

uint64_t CutQueue::unread_bytes() const {
  uint64_t bytes = 0;
  for (const Cut& cut : closed_) bytes += cut.changes.extents.byte_count();
  return bytes;
}

}  // namespace h5mirror::vfd
