// Which cuts become durable, which durable cut becomes a version, and when.
//
//   work                  due                     result
//   a tick                durable_every after it  durable, with all cuts before it
//   a sync, a commit      at once                 durable, with all cuts before it
//   a lost writer's cut   once it is durable      a version; no later cut is durable before
//   a fold                at its own time         the newest durable cut becomes a version
//
// A fold is a close that came too soon after the newest version to be one of its own
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

// A version that is to be made of a cut that is durable.
struct DueVersion {
  CutNumber cut = 0;
  Provenance provenance;
  bool is_fold = false;
};

// Not thread-safe: the file's lock guards it, and the layers that it is shown. `layers` are always
// the cuts that are not applied, oldest first; `durable_cut` is the newest durable one.
class DueWork {
 public:
  using LayerPtr = std::shared_ptr<CutLayer>;
  using Layers = std::deque<LayerPtr>;

  // When there is something to do. InfinitePast: now; InfiniteFuture: nothing until a cut comes.
  absl::Time Next(const Layers& layers, CutNumber durable_cut) const;
  // Whether something is due now and need not wait for an apply. A new generation waits until the
  // old head holds its newest cut.
  bool IsDue(const Layers& layers, CutNumber durable_cut, absl::Time now) const;

  // The layers to make durable now, in one transaction: those that are due and all before them, of
  // one generation. Empty: none is, see TakeVersion().
  std::vector<LayerPtr> NextBatch(const Layers& layers, CutNumber durable_cut,
                                  absl::Time now) const;
  // The version to make now, if there is no batch. It takes a fold. A lost writer's cut stays until
  // LostCutIsVersion(), because a caller that waits for all work under way waits for it too.
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

  // Makes all that waits for its time due.
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
  // the first layer of the generation that follows; null: there is none, or it must wait longer.
  std::vector<LayerPtr> Waiting(const Layers& layers, LayerPtr* next) const;

  std::optional<DueVersion> lost_cut_;
  std::optional<Fold> fold_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_CUTS_DUE_WORK_H_
