#include "onion_store/file/cuts/due_work.h"

#include <algorithm>

namespace h5mirror::store {

absl::Time DueWork::Next(const Layers& layers, CutNumber durable_cut) const {
  if (IsLostCutDurable(durable_cut)) return absl::InfinitePast();
  absl::Time due = fold_.has_value() ? fold_->due : absl::InfiniteFuture();
  for (const LayerPtr& layer : layers) {
    if (!layer->durable) due = std::min(due, layer->due);
  }
  return due;
}

bool DueWork::IsDue(const Layers& layers, CutNumber durable_cut, absl::Time now) const {
  if (Next(layers, durable_cut) > now) return false;
  const auto waiting = std::find_if(layers.begin(), layers.end(),
                                    [](const LayerPtr& layer) { return !layer->durable; });
  if (waiting == layers.end() || waiting == layers.begin()) return true;
  return layers.front()->generation == (*waiting)->generation;
}

std::vector<DueWork::LayerPtr> DueWork::Waiting(const Layers& layers, LayerPtr* next) const {
  std::vector<LayerPtr> waiting;
  for (const LayerPtr& layer : layers) {
    if (layer->durable) continue;
    if (lost_cut_ && layer->cut > lost_cut_->cut) break;
    if (!waiting.empty() && waiting.front()->generation != layer->generation) {
      *next = layer;
      break;
    }
    waiting.push_back(layer);
  }
  return waiting;
}

std::vector<DueWork::LayerPtr> DueWork::NextBatch(const Layers& layers, CutNumber durable_cut,
                                                  absl::Time now) const {
  // A cut that a lost writer left becomes a version before anything follows it.
  if (IsLostCutDurable(durable_cut)) return {};
  LayerPtr next;
  std::vector<LayerPtr> batch = Waiting(layers, &next);
  if (next != nullptr && next->due <= now) return batch;  // All layers before it.
  while (!batch.empty() && batch.back()->due > now) batch.pop_back();
  return batch;
}

std::optional<DueVersion> DueWork::TakeVersion(CutNumber durable_cut, absl::Time now) {
  if (lost_cut_) return lost_cut_;
  if (!fold_ || fold_->due > now) return std::nullopt;
  DueVersion version{durable_cut, std::move(fold_->provenance), true};
  fold_.reset();
  return version;
}

void DueWork::Hurry(const Layers& layers) {
  if (fold_) fold_->due = absl::InfinitePast();
  for (const LayerPtr& layer : layers) {
    if (!layer->durable) layer->due = absl::InfinitePast();
  }
}

}  // namespace h5mirror::store
