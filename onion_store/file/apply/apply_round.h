// One round of an apply: pages of a durable cut on their way into the head, as many as fit into
// memory. Their pre-images share one sync and one transaction.
//
//   Fill()                 which pages the cut touches
//   Load() of each chunk   the old and the new bytes of the head there
//     SavePinned()         the old pages that pinned cuts need
//     SavePreImages()      the old pages that the newest version needs
//   (the caller syncs these, and puts their rows into the index)
//   Write()                the new pages, and their checksums
#ifndef H5MIRROR_ONION_STORE_FILE_APPLY_APPLY_ROUND_H_
#define H5MIRROR_ONION_STORE_FILE_APPLY_APPLY_ROUND_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "onion_store/disk/raw_bytes.h"
#include "onion_store/file/cuts/file_layers.h"
#include "onion_store/file/pins/pins.h"
#include "onion_store/index/version_index.h"
#include "onion_store/pages/found_pages.h"
#include "onion_store/pages/page_segments.h"
#include "onion_store/store.h"

namespace h5mirror::store {

// The subject of an apply, the same in all of its rounds.
struct ApplyBasis {
  std::shared_ptr<CutLayer> layer;  // whose generation has a head and sums
  std::shared_ptr<VersionIndex> index;
  std::shared_ptr<PageSegments> pages;
  VersionNumber version = 0;   // the version whose pages are saved; 0: no version needs them
  bool may_have_rows = false;  // some pages of that version may be saved already
  uint64_t limit_pages = 0;    // no version reaches beyond
  uint64_t old_size_bytes = 0;
  uint32_t page_size_bytes = 0;
  PageCompression compression = {};
};

// Pages that the cut writes, without a gap.
struct ApplyRun {
  uint64_t first = 0, count = 0;  // in the chunk
  char* bytes = nullptr;          // their new content, from Load() to Write()
};

// Runs near enough to be read in one piece.
struct ApplyChunk {
  Extent range;  // whole pages, at most ApplyRound::kChunkBytes
  std::vector<ApplyRun> runs;
  // From here on by Load().
  std::vector<bool> differs;             // new, and different from the old page
  std::vector<bool> keeps_old;           // new, but with a part of the old page
  std::vector<uint32_t> old_sums, sums;  // the old and the new content of the sums file
};

// One past the last byte of the head that `layer` may have cut off.
uint64_t CutOffEnd(const CutLayer& layer, uint64_t old_size_bytes);

// Not thread-safe: an apply holds the file's work lock.
class ApplyRound {
 public:
  static constexpr uint64_t kChunkBytes = 1 << 20;

  explicit ApplyRound(ApplyBasis basis) : basis_(std::move(basis)) {}

  // Forgets the last round. Takes in about `bytes_max` bytes that the cut touches, from `at` on,
  // and moves `at`. If empty() afterwards, nothing is left.
  absl::Status Fill(uint64_t bytes_max, uint64_t* at);
  bool empty() const { return chunks_.empty(); }
  uint64_t touched_bytes() const { return touched_bytes_; }
  std::vector<ApplyChunk>& chunks() { return chunks_; }

  // Makes room for all new pages of the round. Call it before the first Load().
  void PlaceRuns();
  // Reads `chunk`, finds the pages that differ, and sums the new ones.
  absl::Status Load(ApplyChunk& chunk);
  // Both save pages of the chunk loaded last. This one saves the pages that differ, for readers of
  // pinned cuts. Errors: those of writing a file; the apply may go on without them.
  absl::Status SavePinned(const ApplyChunk& chunk, const PagesToPin& to);
  // Saves the pages that differ and for which the version has no row; appends their rows to `runs`.
  absl::Status SavePreImages(const ApplyChunk& chunk, std::vector<PageRun>* runs);
  absl::Status Write();

  const ApplyBasis& basis() const { return basis_; }
  uint64_t changed_pages() const { return changed_pages_; }  // in all rounds
  // Pages of the version that are saved nowhere, found since the last call.
  FoundPages TakeLost() { return std::exchange(lost_, {}); }
  // Pages of the head that are overwritten in part, found since the last call.
  FoundPages TakeBad() { return std::exchange(bad_, {}); }

 private:
  EnvFile& head() const { return *basis_.layer->generation->head; }
  SumsFile& sums() const { return *basis_.layer->generation->sums; }
  uint64_t FirstPage(const ApplyChunk& chunk) const {
    return chunk.range.offset / basis_.page_size_bytes;
  }
  Extent ExtentOf(const ApplyChunk& chunk, const ApplyRun& run) const;
  // The old bytes of `chunk`, the last one that was loaded.
  std::string_view OldBytes(const ApplyChunk& chunk);
  // Takes in `touched`, at most kChunkBytes. It comes after all ranges taken in before.
  void Take(Extent touched);
  absl::StatusOr<std::optional<Extent>> NextTouched(uint64_t offset) const;
  // Gives `take` the ranges of bytes that are touched because the cut has cut off the head.
  template <typename Touch>
  absl::Status TakeCutOff(uint64_t offset, const Touch& take) const;
  // Fills the runs of `chunk` with the new bytes of the head.
  absl::Status ReadNew(ApplyChunk& chunk, absl::Span<const char> old_bytes);
  absl::Status ReadPiece(const Piece& piece, absl::Span<char> to) const;
  void SaveDamage(ApplyChunk& chunk, absl::Span<const char> old_bytes);
  // The pages of `chunk` that the version needs and has no row for. Counts the pages that differ.
  absl::StatusOr<std::vector<bool>> PagesToSave(const ApplyChunk& chunk);
  // `wanted` without the pages that do not match their sums. These pages get rows of their own.
  std::vector<bool> NoteDamaged(const ApplyChunk& chunk, std::vector<bool> wanted,
                                std::vector<PageRun>* runs);
  absl::Status WriteRun(const ApplyChunk& chunk, const ApplyRun& run);

  const ApplyBasis basis_;
  std::vector<ApplyChunk> chunks_;
  uint64_t touched_bytes_ = 0;  // of all runs
  uint64_t changed_pages_ = 0;
  FoundPages lost_, bad_;
  RawBytes old_memory_;  // of one chunk at a time
  RawBytes new_memory_;  // of all runs, one after the other
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_APPLY_APPLY_ROUND_H_
