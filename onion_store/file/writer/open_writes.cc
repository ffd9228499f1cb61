#include "onion_store/file/writer/open_writes.h"

#include <algorithm>
#include <utility>

#include "base/rounding.h"
#include "base/status_macros.h"

namespace h5mirror::store {
namespace {

// Gives out the bytes of `pieces` from the front.
class PieceCursor {
 public:
  explicit PieceCursor(absl::Span<const std::string_view> pieces) : pieces_(pieces) {}
  void Take(uint64_t length, std::vector<std::string_view>* out) {
    while (length > 0) {
      std::string_view part = pieces_[piece_].substr(skip_, length);
      if (!part.empty()) out->push_back(part);
      skip_ += part.size();
      length -= part.size();
      if (skip_ == pieces_[piece_].size()) ++piece_, skip_ = 0;
    }
  }

 private:
  absl::Span<const std::string_view> pieces_;
  size_t piece_ = 0, skip_ = 0;
};

}  // namespace

void OpenWrites::Open(const WriterFacts& facts, LayerPtr layer, uint64_t size_bytes,
                      uint32_t page_size_bytes) {
  facts_ = facts;
  layer_ = std::move(layer);
  size_bytes_ = size_bytes;
  page_size_bytes_ = page_size_bytes;
}

uint64_t OpenWrites::Floor() const { return RoundUp(generation()->cut_bytes, page_size_bytes_); }

absl::Status OpenWrites::Write(StageLog& stage, CutNumber last_cut,
                               absl::Span<const Extent> extents,
                               absl::Span<const std::string_view> pieces) {
  const uint64_t floor = Floor();
  PieceCursor cursor(pieces);
  std::vector<Extent> staged;
  std::vector<std::string_view> staged_pieces, direct_pieces;
  Extent direct;  // direct_pieces lie here
  for (const Extent& extent : extents) {
    if (extent.length == 0) continue;
    size_bytes_ = std::max(size_bytes_, extent.end());
    layer_->sent_bytes += extent.length;
    uint64_t below = extent.offset >= floor ? 0 : std::min(extent.length, floor - extent.offset);
    if (below > 0) {
      cursor.Take(below, &staged_pieces);
      if (!staged.empty() && staged.back().end() == extent.offset) {
        staged.back().length += below;
      } else {
        staged.push_back({extent.offset, below});
      }
    }
    Extent beyond{extent.offset + below, extent.length - below};
    if (beyond.length == 0) continue;
    if (direct.length > 0 && direct.end() != beyond.offset) {
      H5M_RETURN_IF_ERROR(WriteDirect(direct.offset, direct_pieces));
      direct = {};
      direct_pieces.clear();
    }
    cursor.Take(beyond.length, &direct_pieces);
    direct = direct.length == 0 ? beyond : Extent{direct.offset, direct.length + beyond.length};
  }
  if (direct.length > 0) H5M_RETURN_IF_ERROR(WriteDirect(direct.offset, direct_pieces));
  if (staged.empty()) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(StageLocation at,
                       stage.AppendWrite(generation()->number, last_cut, staged, staged_pieces));
  for (const Extent& extent : staged) {
    ForgetSums(extent);
    H5M_RETURN_IF_ERROR(layer_->data.Put(extent, at));
    at += extent.length;
  }
  return absl::OkStatus();
}

absl::Status OpenWrites::WriteDirect(uint64_t offset, absl::Span<const std::string_view> pieces) {
  uint64_t length = 0;
  for (std::string_view piece : pieces) length += piece.size();
  Generation& written = *generation();
  H5M_RETURN_IF_ERROR(written.CutHeadAgain());
  // Noted first: should the write fail half-way, the session's end must cut it off.
  // A generation without a cut is direct as a whole.
  layer_->data.AddDirect(written.has_cut ? Extent{offset, length} : Extent{0, offset + length});
  absl::Status status = written.head->WriteAt(offset, pieces);
  // Only now: a sync that runs beside the write takes the mark away and may miss the bytes.
  written.dirty = true;
  if (written.direct_sums == nullptr) return status;
  if (status.ok()) {
    written.direct_sums->Note(offset, pieces);
  } else {
    written.direct_sums->Forget({offset, length});
  }
  return status;
}

absl::Status OpenWrites::Truncate(StageLog& stage, CutNumber last_cut, uint64_t size_bytes) {
  if (size_bytes >= size_bytes_) {
    size_bytes_ = size_bytes;
    return absl::OkStatus();
  }
  const uint64_t floor = Floor();
  const uint64_t direct_end = layer_->data.direct().end();
  if (size_bytes < floor) {
    H5M_RETURN_IF_ERROR(stage.AppendTruncate(generation()->number, last_cut, size_bytes));
  }
  ForgetSums({size_bytes, UINT64_MAX - size_bytes});
  H5M_RETURN_IF_ERROR(layer_->data.Truncate(size_bytes));
  if (direct_end > std::max(size_bytes, floor)) {
    H5M_RETURN_IF_ERROR(generation()->head->Truncate(std::max(size_bytes, floor)));
    generation()->dirty = true;
  }
  size_bytes_ = size_bytes;
  return absl::OkStatus();
}

absl::Status OpenWrites::StageReverts(StageLog& stage, CutNumber last_cut,
                                      absl::Span<const Revert> reverts,
                                      std::shared_ptr<const int> pin) {
  H5M_RETURN_IF_ERROR(stage.AppendReverts(generation()->number, last_cut, reverts));
  layer_->revert_pin = std::move(pin);
  for (const Revert& revert : reverts) {
    ForgetSums(revert.extent);
    H5M_RETURN_IF_ERROR(layer_->data.Put(revert.extent, revert.at));
    layer_->sent_bytes += revert.extent.length;
    size_bytes_ = std::max(size_bytes_, revert.extent.end());
  }
  return absl::OkStatus();
}

void OpenWrites::ForgetSums(Extent extent) {
  if (generation()->direct_sums != nullptr) generation()->direct_sums->Forget(extent);
}

void OpenWrites::BeginCopy(uint64_t size_bytes) {
  if (size_bytes > 0) layer_->data.AddDirect({0, size_bytes});
  size_bytes_ = size_bytes;
}

void OpenWrites::EndCopy(uint64_t copied_bytes) {
  layer_->sent_bytes += copied_bytes;
  generation()->dirty = true;
}

absl::Status OpenWrites::TakeCut(StageLog& stage, CutNumber cut, const CutRequest& request) {
  if (!layer_->begins_generation) {
    const std::vector<Extent> direct = layer_->data.direct().ToVector();
    H5M_RETURN_IF_ERROR(stage.AppendCut(generation()->number, cut, request.size_bytes, direct));
  }
  layer_->cut = cut;
  layer_->size_bytes = layer_->cut_bytes = request.size_bytes;
  layer_->kind = request.kind;
  layer_->barrier = request.barrier;
  layer_->provenance = request.provenance;
  layer_->origin = facts_.origin;
  layer_->mode_bits = facts_.mode_bits;
  layer_->local = request.local;
  if (request.request_id.has_value()) layer_->request_id = request.request_id;
  layer_->group = request.group;
  layer_->segments = stage.segments();
  layer_->stage_end = stage.end();
  return absl::OkStatus();
}

absl::Status OpenWrites::Drop(EnvTree& tree, StageLog& stage, StageEnd stage_end,
                              uint64_t head_bytes, const std::string& head_name) {
  const LayerPtr dropped = std::exchange(layer_, nullptr);
  Generation& written = *dropped->generation;
  if (!written.has_cut) H5M_RETURN_IF_ERROR(tree.Remove(head_name));
  H5M_RETURN_IF_ERROR(stage.RewindTo(stage_end));
  if (!written.has_cut || dropped->data.direct().empty()) return absl::OkStatus();
  if (written.direct_sums != nullptr) written.direct_sums->ForgetFrom(head_bytes);
  absl::Status cut = written.head->Truncate(head_bytes);
  written.dirty = true;
  return cut;
}

}  // namespace h5mirror::store
