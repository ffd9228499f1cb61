// The plan of one index transaction for a batch of cuts. It has the file's row, a row for each new
// version, and the answers to the callers that wait for a cut.
//
// A cut of kind commit becomes a version, except where
//   - no byte has changed since the newest version (is_unchanged), and it is of no new cut of a
//     group, or
//   - the history is stopped, and the cut is no writer's last (is_stopped).
// A rollback and the first cut of a generation always count as changed.
#ifndef H5MIRROR_ONION_STORE_FILE_CUTS_COMMIT_PLAN_H_
#define H5MIRROR_ONION_STORE_FILE_CUTS_COMMIT_PLAN_H_

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "onion_store/file/cuts/file_layers.h"
#include "onion_store/index/version_index.h"

namespace h5mirror::store {

// The state before the commit.
struct CommitBasis {
  FileRow row;             // as the index has it
  VersionInfo newest;      // the newest version; number 0: there is none
  CutNumber next_cut = 0;  // the number that the next cut gets
  // The first segment of the stage that durable cuts need which the head does not hold; unset:
  // there is no such cut.
  std::optional<uint64_t> unapplied_segment;
};

// The questions of a plan. It asks them in order, and only where the answer decides.
struct CommitQuestions {
  // Whether layers[i] changes a byte of the cut below it, which has `size_below` bytes.
  absl::FunctionRef<absl::StatusOr<bool>(size_t i, uint64_t size_below)> changes;
  absl::FunctionRef<bool()> is_history_stopped;
  // Whether a version in the index was made for this id already.
  absl::FunctionRef<bool(const std::array<uint8_t, 16>&)> is_known_request;
};

// The result for one layer of the batch.
struct PlannedCut {
  VersionNumber made = 0;     // the version that it becomes; 0: none
  VersionNumber newest = 0;   // the newest version once it is durable
  bool is_unchanged = false;  // of kind commit, and no version: see above
  bool is_stopped = false;    // likewise
};

struct CommitPlan {
  FileRow row;
  VersionInfo newest;
  std::optional<GenerationRow> begins;  // the generation that begins with the batch
  std::vector<VersionRow> versions;     // that are made, rising
  std::vector<PlannedCut> cuts;         // one for each layer
};

// Plans the commit of `layers`: at least one, oldest first, of one generation. Does no I/O but that
// of `questions`. Errors: those of `questions.changes`.
absl::StatusOr<CommitPlan> PlanCommit(const CommitBasis& basis,
                                      absl::Span<const std::shared_ptr<CutLayer>> layers,
                                      const CommitQuestions& questions);

// The answer to `waiter`, which waits for the cut of a layer, once that is durable as `cut`.
DurableCut AnswerTo(const CutWaiter& waiter, const PlannedCut& cut);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_CUTS_COMMIT_PLAN_H_
