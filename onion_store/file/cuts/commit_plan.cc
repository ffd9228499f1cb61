#include "onion_store/file/cuts/commit_plan.h"

#include <algorithm>

#include "base/status_macros.h"

namespace h5mirror::store {
namespace {

// How many cut numbers each commit reserves for later cuts.
constexpr CutNumber kCutBlock = 65536;

// Sets where the stage begins and ends once `layers` are durable.
void TakeStage(const CommitBasis& basis, absl::Span<const std::shared_ptr<CutLayer>> layers,
               FileRow* row) {
  const uint64_t first = layers.front()->first_segment;
  const StageEnd end = layers.back()->stage_end;
  row->stage_first = std::min(first, basis.unapplied_segment.value_or(first));
  row->stage_last = end.segment;
  row->stage_end_bytes = end.bytes;
  row->stage_first = std::min(row->stage_first, row->stage_last);
}

void TakeCut(const CutLayer& layer, FileRow* row) {
  row->sent_bytes += layer.sent_bytes;
  row->durable_cut = layer.cut;
  row->durable_size_bytes = layer.size_bytes;
  row->durable_barrier = layer.barrier;
  row->origin = layer.origin;
  row->mode_bits = layer.mode_bits;
  row->local = layer.local;
}

// Begins the generation of `layer`. Its head holds nothing yet.
GenerationRow TakeGeneration(const CutLayer& layer, FileRow* row) {
  row->generation = layer.generation->number;
  row->applied_size_bytes = 0;
  return {layer.generation->number, layer.cut,
          std::min(layer.data.direct_end_max(), layer.cut_bytes)};
}

// Whether the newest version is not of the layer's group cut. Then the layer becomes a version even
// if it changed nothing, so that changed and unchanged members are found by the same number.
bool IsOfNewGroupCut(const CutLayer& layer, const VersionInfo& newest) {
  return layer.group && !(newest.group && newest.group->IsOfSameCut(*layer.group));
}

// Whether the file has changed since its newest version, with layers[i].
absl::StatusOr<bool> HasChanged(const CutLayer& layer, size_t i, const CommitPlan& plan,
                                const CommitQuestions& questions) {
  if (layer.begins_generation || layer.always_version || plan.row.changed) return true;
  if (IsOfNewGroupCut(layer, plan.newest)) return true;
  return questions.changes(i, plan.row.durable_size_bytes);
}

PlannedCut Decide(const CutLayer& layer, const FileRow& row, const CommitQuestions& questions) {
  PlannedCut cut;
  if (layer.kind != BarrierKind::kCommit || layer.always_version) return cut;
  cut.is_unchanged = !row.changed;
  cut.is_stopped = !cut.is_unchanged && !layer.is_writers_last && questions.is_history_stopped();
  return cut;
}

VersionRow NextVersion(const CutLayer& layer, VersionNumber version,
                       const CommitQuestions& questions, FileRow* row) {
  row->server_time_ns = std::max(row->server_time_ns + 1, absl::ToUnixNanos(layer.time));
  VersionRow made;
  made.info.version = version;
  made.info.cut = layer.cut;
  made.info.server_time = absl::FromUnixNanos(row->server_time_ns);
  made.info.provenance = layer.provenance;
  made.info.size_bytes = layer.size_bytes;
  made.info.generation = layer.generation->number;
  made.info.changed_bytes = row->sent_bytes;
  // An id belongs to the first version made with it; a repeat finds that version.
  if (layer.request_id && !questions.is_known_request(*layer.request_id)) {
    made.request_id = layer.request_id;
  }
  made.info.group = layer.group;
  made.info.source = layer.source;
  if (made.info.source) made.info.source->time = made.info.server_time;
  row->changed = false;
  row->sent_bytes = 0;
  return made;
}

}  // namespace

absl::StatusOr<CommitPlan> PlanCommit(const CommitBasis& basis,
                                      absl::Span<const std::shared_ptr<CutLayer>> layers,
                                      const CommitQuestions& questions) {
  CommitPlan plan;
  plan.row = basis.row;
  plan.newest = basis.newest;
  plan.row.cut_reserved = std::max(plan.row.cut_reserved, basis.next_cut + kCutBlock);
  TakeStage(basis, layers, &plan.row);
  for (size_t i = 0; i < layers.size(); ++i) {
    const CutLayer& layer = *layers[i];
    H5M_ASSIGN_OR_RETURN(plan.row.changed, HasChanged(layer, i, plan, questions));
    if (layer.begins_generation) plan.begins = TakeGeneration(layer, &plan.row);
    TakeCut(layer, &plan.row);
    PlannedCut cut = Decide(layer, plan.row, questions);
    if (layer.kind == BarrierKind::kCommit && !cut.is_unchanged && !cut.is_stopped) {
      cut.made = plan.newest.version + 1;
      plan.versions.push_back(NextVersion(layer, cut.made, questions, &plan.row));
      plan.newest = plan.versions.back().info;
    }
    cut.newest = plan.newest.version;
    plan.cuts.push_back(cut);
  }
  return plan;
}

DurableCut AnswerTo(const CutWaiter& waiter, const PlannedCut& cut) {
  const bool commit = waiter.kind == BarrierKind::kCommit;
  return {waiter.cut, waiter.barrier, commit ? cut.newest : 0, commit && cut.is_unchanged,
          commit && cut.is_stopped};
}

}  // namespace h5mirror::store
