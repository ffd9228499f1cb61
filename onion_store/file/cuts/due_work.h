// Which cuts become durable, which durable cut becomes a version, and when.
//
//   work                  due                     result
//   a tick                durable_every after it  durable, with all cuts before it
//   a sync, a commit      at once                 durable, with all cuts before it
//   a lost writer's cut   once it is durable      a version; no later cut is durable before
//   a fold                at its own time         the newest durable cut becomes a version
//
// A fold is a close that came too soon after the newest version to make a version of its own
// (CutRequest::version_at).
#ifndef H5MIRROR_ONION_STORE_FILE_CUTS_DUE_WORK_H_
#define H5MIRROR_ONION_STORE_FILE_CUTS_DUE_WORK_H_

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "onion_store/file/cuts/file_layers.h"

namespace h5mirror::store {

// A version to be made of a durable cut.
struct DueVersion {
  CutNumber cut = 0;
  Provenance provenance;
  bool is_fold = false;
};

// Not thread-safe: the file's lock guards it, and the layers passed to it. `layers` are always the
// cuts that are not applied, oldest first; `durable_cut` is the newest durable one.
class DueWork {
 public:
  using LayerPtr = std::shared_ptr<CutLayer>;
  using Layers = std::deque<LayerPtr>;

  // When the next work is due. InfinitePast: now; InfiniteFuture: not before a cut comes.
  absl::Time Next(const Layers& layers, CutNumber durable_cut) const;
  // Whether work is due now that need not wait for an apply. A new generation waits until the old
  // head holds its newest cut.
  bool IsDue(const Layers& layers, CutNumber durable_cut, absl::Time now) const;

  // The layers to make durable now, in one transaction: the layers that are due and all before
  // them, of one generation. Empty: none is due; see TakeVersion().
  std::vector<LayerPtr> NextBatch(const Layers& layers, CutNumber durable_cut,
                                  absl::Time now) const;
  // The version to make now, if there is no batch. Removes a fold from this object. A lost writer's
  // cut stays until LostCutIsVersion(), because a caller that waits for all work also waits for it.
  std::optional<DueVersion> TakeVersion(CutNumber durable_cut, absl::Time now);

  // The cut `cut` of a lost writer is to become a version.
  void AddLostCut(CutNumber cut, Provenance provenance) {
    lost_cut_ = DueVersion{cut, std::move(provenance)};
  }
  void LostCutIsVersion(CutNumber cut) {
    if (lost_cut_ && lost_cut_->cut == cut) lost_cut_.reset();
  }
  bool has_lost_cut() const { return lost_cut_.has_value(); }

  // The newest cut becomes a version at `due`. Replaces an earlier fold.
  void AddFold(absl::Time due, Provenance provenance) { fold_ = Fold{due, std::move(provenance)}; }
  // A version has the changes of the fold.
  void DropFold() { fold_.reset(); }
  bool has_fold() const { return fold_.has_value(); }

  // Makes all work due that waits for its time.
  void Hurry(const Layers& layers);

 private:
  struct Fold {
    absl::Time due;
    Provenance provenance;
  };

  bool IsLostCutDurable(CutNumber durable_cut) const {
    return lost_cut_ && lost_cut_->cut <= durable_cut;
  }
  // The layers that may become durable next: of one generation, up to a lost writer's cut. `next`:
  // the first layer of the generation that follows; null: there is none, or it must still wait.
  std::vector<LayerPtr> Waiting(const Layers& layers, LayerPtr* next) const;

  std::optional<DueVersion> lost_cut_;
  std::optional<Fold> fold_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_CUTS_DUE_WORK_H_
