// The heads of a copy: decides which layers of the last copy stay, what the new layers hold, and
// where a broken-off copy continues.
#include <algorithm>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/strings.h"
#include "onion_store/jobs/copy_job.h"

namespace h5mirror::store {
namespace {

// Beyond either bound the next copy begins with a layer of all bytes.
constexpr size_t kLayersMax = 64;
// The bound while the head has damaged pages whose bytes only older layers have.
constexpr size_t kDamagedLayersMax = 500;
// The bound of layers that together have all bytes: each break-off of a copy makes one more.
constexpr size_t kBegunLayersMax = 300;
// The weight of a layer whose bytes are damaged in the head by now.
constexpr int64_t kNeverMerged = int64_t{1} << 40;
constexpr size_t kVersionsAtOnce = 1000;
constexpr absl::Duration kPutTimeout = absl::Minutes(2);
constexpr absl::Duration kDeleteTimeout = absl::Seconds(30);

uint64_t ObjectBytes(absl::Span<const CopyLayer> layers) {
  uint64_t bytes = 0;
  for (const CopyLayer& layer : layers) bytes += layer.object_bytes();
  return bytes;
}

// Whether changes over `layers` cost more by now than putting all bytes again. A broken-off copy
// has put all bytes in several layers.
bool IsWorn(absl::Span<const CopyLayer> layers) {
  const auto is_change = [](const CopyLayer& layer) { return layer.from != 0; };
  const auto first = std::find_if(layers.begin(), layers.end(), is_change);
  const auto all = static_cast<size_t>(first - layers.begin());
  return layers.size() - all + 1 >= kLayersMax ||
         ObjectBytes(layers.subspan(all)) > ObjectBytes(layers.first(all));
}

// A note lists every part, so this job makes few. A later job reads a little again for that.
bool IsTimeToNote(uint64_t parts, uint64_t noted_parts) {
  return parts - noted_parts >= std::max<uint64_t>(1, parts / 16);
}

}  // namespace

absl::Status CopyJob::PlanHeads() {
  const auto version = index_.GetVersion(version_);
  if (absl::IsNotFound(version.status())) {
    return LeaveFor(StrCat("version ", version_, " was dropped meanwhile"));
  }
  H5M_RETURN_IF_ERROR(version.status());
  copy_.version_time = version->info.server_time;
  std::vector<VersionSize> versions;
  VersionNumber after = 0;
  for (bool more = true; more;) {
    H5M_ASSIGN_OR_RETURN(more, index_.ScanVersions(kVersionsAtOnce, after, &versions));
    for (const VersionSize& each : versions) {
      if (each.version <= version_) heads_[each.generation] = each.version;
    }
    if (!versions.empty()) after = versions.back().version;
    versions.clear();
  }
  phase_ = Phase::kHead;
  return absl::OkStatus();
}

absl::StatusOr<bool> CopyJob::IsThere(VersionNumber version, CutNumber cut, int64_t generation) {
  const auto row = index_.GetVersion(version);
  if (absl::IsNotFound(row.status())) return false;
  H5M_RETURN_IF_ERROR(row.status());
  return row->info.cut == cut && row->info.generation == generation;
}

absl::Status CopyJob::BeginHead() {
  if (heads_.empty()) {
    phase_ = Phase::kIndex;
    return absl::OkStatus();
  }
  const auto [generation, version] = *heads_.begin();
  noted_parts_ = 0;
  auto opened = file_.OpenVersion(version);
  if (absl::IsNotFound(opened.status()) || absl::IsOutOfRange(opened.status())) {
    return LeaveFor(StrCat("version ", version, " was dropped meanwhile"));
  }
  H5M_ASSIGN_OR_RETURN(auto reader, std::move(opened));
  const VersionInfo& info = reader->info();
  CopyHead head{generation, version, info.cut, info.size_bytes, {}};
  const CopyHead* const last = LastHead(generation);
  bool stays = false;
  if (last != nullptr) {
    H5M_ASSIGN_OR_RETURN(stays, Stays(*last, info));
  }
  // By now the copy has all bytes of an earlier version.
  if (!copy_.heads.empty() && copy_.heads.back().generation == generation) {
    const CopyHead begun = std::move(copy_.heads.back());
    copy_.heads.pop_back();
    return GoOnFrom(begun, std::move(head));
  }
  if (stays) {
    copy_.heads.push_back(*last);
    heads_.erase(heads_.begin());
    return absl::OkStatus();
  }
  CopyLayer layer = NewLayer();
  if (last != nullptr) {
    const bool is_damaged = last->is_damaged && last->layers.size() < kDamagedLayersMax;
    head.is_damaged = is_damaged || damaged_ == generation;
    if (head.is_damaged || !IsWorn(last->layers)) {
      H5M_ASSIGN_OR_RETURN(bytes_, BytesOver(*last, &head, &layer));
    }
    if (bytes_ == nullptr) head.is_damaged = false;
  }
  if (bytes_ == nullptr) {
    H5M_ASSIGN_OR_RETURN(const bool goes_on, GoOn(head));
    if (goes_on) return absl::OkStatus();
    bytes_ = LayerBytes::OfVersion(std::move(reader));
  }
  head.layers.push_back(std::move(layer));
  copy_.heads.push_back(std::move(head));
  heads_.erase(heads_.begin());
  has_more_ = true;
  phase_ = Phase::kHeadParts;
  return absl::OkStatus();
}

absl::StatusOr<bool> CopyJob::GoOn(const CopyHead& wanted) {
  if (!begun_) return false;
  const auto found =
      std::find_if(begun_->heads.begin(), begun_->heads.end(),
                   [&](const CopyHead& head) { return head.generation == wanted.generation; });
  if (found == begun_->heads.end() || found->version > wanted.version) return false;
  H5M_ASSIGN_OR_RETURN(const bool is_there, IsThere(found->version, found->cut, found->generation));
  if (!is_there || found->layers.size() > kBegunLayersMax) return false;
  const bool is_last = &*found == &begun_->heads.back();
  const uint64_t done_bytes = is_last ? begun_->done_bytes : found->size_bytes;
  CopyHead head = *found;
  if (done_bytes >= head.size_bytes) {
    H5M_RETURN_IF_ERROR(GoOnFrom(head, wanted));
    return true;
  }
  auto reader = file_.OpenVersion(head.version);
  if (absl::IsNotFound(reader.status()) || absl::IsOutOfRange(reader.status())) return false;
  H5M_RETURN_IF_ERROR(reader.status());
  // Under a name of this copy: a late call of the broken-off job may still arrive.
  head.layers.push_back(NewLayer());
  bytes_ = LayerBytes::OfVersion(*std::move(reader), done_bytes);
  copy_.heads.push_back(std::move(head));
  has_more_ = true;
  phase_ = Phase::kHeadParts;
  return true;
}

absl::Status CopyJob::GoOnFrom(const CopyHead& begun, CopyHead head) {
  if (begun.version == head.version) {
    heads_.erase(begun.generation);
    copy_.heads.push_back(begun);
    phase_ = Phase::kHead;
    return absl::OkStatus();
  }
  head.layers.clear();
  CopyLayer layer = NewLayer();
  H5M_ASSIGN_OR_RETURN(bytes_, BytesOver(begun, &head, &layer));
  if (bytes_ == nullptr) {  // Its version was dropped meanwhile.
    begun_.reset();
    phase_ = Phase::kHead;
    return absl::OkStatus();
  }
  head.layers.push_back(std::move(layer));
  heads_.erase(head.generation);
  copy_.heads.push_back(std::move(head));
  has_more_ = true;
  phase_ = Phase::kHeadParts;
  return absl::OkStatus();
}

absl::Status CopyJob::NoteBegun() {
  uint64_t parts = 0;
  for (const CopyLayer& layer : copy_.heads.back().layers) parts += layer.parts.size();
  // When a head is whole, its last parts are noted too, if it had a note before.
  const bool is_time = has_more_ ? IsTimeToNote(parts, noted_parts_) : noted_parts_ > 0;
  if (!is_time) return absl::OkStatus();
  const std::string text = EncodeBegunCopy({files_.file_id(), copy_.heads, bytes_->position()});
  if (text.size() > kCopyListBytesMax) return absl::OkStatus();
  const std::string before = std::exchange(noted_, BegunCopyName(copy_.prefix, note_count_++));
  noted_parts_ = parts;
  TextSource source(text);
  H5M_RETURN_IF_ERROR(store_.Put(noted_, source, kPutTimeout));
  return before.empty() ? absl::OkStatus() : store_.Delete(before, kDeleteTimeout);
}

const CopyHead* CopyJob::LastHead(int64_t generation) const {
  if (!last_) return nullptr;
  for (const CopyHead& head : last_->heads) {
    if (head.generation == generation) return &head;
  }
  return nullptr;
}

absl::StatusOr<bool> CopyJob::Stays(const CopyHead& last, const VersionInfo& newest) {
  if (last.version == newest.version) return last.cut == newest.cut;
  // For an older generation the head of a dropped version will do, too: all pages that differ in
  // earlier versions have rows.
  const bool is_older = newest.generation != heads_.rbegin()->first;
  if (!is_older || last.version < newest.version) return false;
  H5M_ASSIGN_OR_RETURN(const GenerationRow began, index_.GetGeneration(newest.generation));
  return last.cut > newest.cut && last.cut >= began.first_cut;
}

absl::StatusOr<std::unique_ptr<LayerBytes>> CopyJob::BytesOver(const CopyHead& last, CopyHead* head,
                                                               CopyLayer* layer) {
  H5M_ASSIGN_OR_RETURN(const bool is_there, IsThere(last.version, last.cut, last.generation));
  if (!is_there || last.version > head->version) return nullptr;
  head->layers = last.layers;
  layer->from = last.version;
  layer->from_cut = last.cut;
  const bool is_met = damaged_ == last.generation;
  for (CopyLayer& below : head->layers) {
    if (is_met && below.from == damaged_from_ && below.from != 0) below.weight = kNeverMerged;
  }
  // Layers with bytes that are damaged by now stay as they are.
  while (!is_met && head->layers.size() > 1 && head->layers.back().weight <= layer->weight) {
    const CopyLayer& below = head->layers.back();
    H5M_ASSIGN_OR_RETURN(const bool can_merge,
                         IsThere(below.from, below.from_cut, last.generation));
    if (!can_merge) break;
    layer->from = below.from;
    layer->from_cut = below.from_cut;
    layer->weight += below.weight;
    head->layers.pop_back();
  }
  H5M_ASSIGN_OR_RETURN(auto changes, file_.OpenChanges(layer->from, head->version));
  H5M_ASSIGN_OR_RETURN(auto reader, file_.OpenVersion(head->version));
  return LayerBytes::OfChanges(std::move(reader), std::move(changes));
}

void CopyJob::TakeOutChanges(VersionNumber from, VersionNumber to, ExtentSet* lost) {
  const auto changes = file_.OpenChanges(from, to);
  if (!changes.ok()) return;  // A version was dropped, so the changes are unknown.
  std::vector<Extent> ranges;
  for (bool more = true; more;) {
    const auto next = (*changes)->Next(&ranges);
    if (!next.ok()) return;
    more = *next;
    for (const Extent& range : ranges) lost->Remove(range);
  }
}

uint64_t CopyJob::LostBytes() {
  uint64_t bytes = 0;
  for (const CopyHead& head : copy_.heads) {
    ExtentSet lost;
    for (size_t i = 0; i < head.layers.size(); ++i) {
      const CopyLayer& layer = head.layers[i];
      const bool is_newest = i + 1 == head.layers.size();
      if (!lost.empty() && layer.from != 0) {
        TakeOutChanges(layer.from, is_newest ? head.version : head.layers[i + 1].from, &lost);
      }
      for (const Extent& extent : layer.lost) lost.Add(extent);
    }
    lost.TruncateTo(head.size_bytes);
    bytes += lost.byte_count();
  }
  return bytes;
}

absl::Status CopyJob::MeetDamage(const CopyLayer& layer) {
  CopyHead& head = copy_.heads.back();
  if (damage_.empty()) damage_ = bytes_->damage();
  const CopyHead* const last = LastHead(head.generation);
  const bool is_upon_last = last != nullptr && layer.from == last->version;
  if ((last == nullptr || is_upon_last) && layer.lost.size() <= kLostExtentsMax) {
    return absl::OkStatus();
  }
  const std::string why = bytes_->damage();
  // Some bytes were already passed: after any error begin again.
  bytes_.reset();
  phase_ = Phase::kBegin;
  bool can_be_built_upon = false;
  if (last != nullptr && !is_upon_last) {
    H5M_ASSIGN_OR_RETURN(can_be_built_upon, IsThere(last->version, last->cut, last->generation));
  }
  if (!can_be_built_upon || damaged_ == head.generation) {
    return absl::DataLossError(
        StrCat(why, last == nullptr ? "; the head has too many damaged pages for a copy"
                                    : "; the last copy stays, which may have the bytes"));
  }
  damaged_ = head.generation;
  damaged_from_ = layer.from;
  heads_.try_emplace(head.generation, head.version);
  copy_.heads.pop_back();
  phase_ = Phase::kHead;
  return absl::OkStatus();
}

}  // namespace h5mirror::store
