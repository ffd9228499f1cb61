// The state of a file between its head and its newest write, in memory.
#ifndef H5MIRROR_ONION_STORE_FILE_CUTS_FILE_LAYERS_H_
#define H5MIRROR_ONION_STORE_FILE_CUTS_FILE_LAYERS_H_

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "onion_store/file.h"
#include "onion_store/pages/generation.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/stage/staged_layer.h"

namespace h5mirror::store {

// One caller of Cut(). `on_durable` is called when the cut is durable or can never be.
struct CutWaiter {
  CutNumber cut = 0;
  BarrierId barrier;
  BarrierKind kind = BarrierKind::kTick;
  std::function<void(absl::StatusOr<DurableCut>)> on_durable;
};

// A cut, or the writes since the last cut, which will be one. Changes under the file's lock until
// `frozen` is set; after that only the fields below `frozen` change.
struct CutLayer {
  CutLayer(MemoryBudget& budget, EnvTree& tree, std::string directory)
      : data(budget, tree, std::move(directory)) {}

  StagedLayer data;
  std::shared_ptr<Generation> generation;
  // Fills `out` with the bytes at `at`, which `data` names. Errors: as ReadStaged() and
  // PageSegments::ReadAt().
  absl::Status Read(StageLocation at, absl::Span<char> out) const {
    return IsInPages(at) ? pages->ReadAt(at, out) : ReadStaged(segments, at, out);
  }

  std::shared_ptr<PageSegments> pages;
  std::shared_ptr<const int> revert_pin;  // set: it has bytes in `pages`, which must stay
  StageSegments segments;                 // these hold its staged bytes
  uint64_t first_segment = 0;             // the first segment with bytes of it
  StageEnd stage_end;                     // behind its cut record
  CutNumber cut = 0;
  uint64_t size_bytes = 0;
  uint64_t cut_bytes = 0;  // the largest size of the cuts that were merged into it
  uint64_t sent_bytes = 0;
  BarrierKind kind = BarrierKind::kTick;
  BarrierId barrier;
  Provenance provenance;
  Origin origin;
  uint32_t mode_bits = 0;
  LocalStat local;
  bool begins_generation = false;
  bool always_version = false;  // a rollback, or a new generation
  // The last cut of a lost writer: a version, if it changed a byte, also while history is stopped.
  bool is_writers_last = false;
  std::optional<std::array<uint8_t, 16>> request_id;
  std::optional<SourceVersion> source;  // of a fork or a promotion; its version has that
  std::optional<GroupCut> group;        // likewise, of a member of several files
  absl::Time time;                      // of the cut, and of its version
  absl::Time due;                       // when it is to become durable
  std::vector<CutWaiter> waiters;
  bool recovered = false;  // an earlier apply, of this run or another, may have written a part
  bool frozen = false;     // the background makes it durable, or has

  bool durable = false;
  VersionNumber version = 0;  // the version that it is; 0: none
};

// Fills `out` with what `layers` (oldest first) over a generation's head hold at `offset`. Bytes at
// or beyond `size_bytes` are zeros.
absl::Status ReadThrough(const std::vector<std::shared_ptr<CutLayer>>& layers, EnvFile& head,
                         uint64_t size_bytes, uint64_t offset, absl::Span<char> out);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_CUTS_FILE_LAYERS_H_
