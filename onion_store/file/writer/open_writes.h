// The writes of a file that are in no cut yet: those of a session or of a rollback.
//
//   kClosed -- Open() --> kOpen -- Write(), Truncate(), StageReverts() --> kOpen
//      ^                    |----- TakeCut(), then Continue(): the next layer --> kOpen
//      +------ Drop() ------+
//
// A write below the floor is staged; at or beyond it, it goes directly to its place in the head
// (docs/design/030-order-of-writes.md). The floor is the largest size of any cut of the generation,
// rounded up to a page. In a generation without a cut all writes are direct. Nothing here is
// synced.
#ifndef H5MIRROR_ONION_STORE_FILE_WRITER_OPEN_WRITES_H_
#define H5MIRROR_ONION_STORE_FILE_WRITER_OPEN_WRITES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "onion_store/file.h"
#include "onion_store/file/cuts/file_layers.h"
#include "onion_store/stage/stage_log.h"

namespace h5mirror::store {

// The facts that the writer gave at the beginning; each of its cuts has them.
struct WriterFacts {
  Origin origin;
  uint32_t mode_bits = 0;
};

// Not thread-safe: the file's state lock guards it. `stage` is always the file's stage, and
// `last_cut` its newest cut. An error of a write leaves it open: only Drop() may follow.
class OpenWrites {
 public:
  using LayerPtr = std::shared_ptr<CutLayer>;
  using GenerationPtr = std::shared_ptr<Generation>;
  enum class Phase : uint8_t { kClosed, kOpen };

  Phase phase() const { return layer_ == nullptr ? Phase::kClosed : Phase::kOpen; }
  bool is_open() const { return phase() == Phase::kOpen; }

  // `layer`: an empty layer of the generation to write, which has `size_bytes` now.
  void Open(const WriterFacts& facts, LayerPtr layer, uint64_t size_bytes,
            uint32_t page_size_bytes);

  // The calls below are for kOpen, except layer().

  // Null: kClosed.
  const LayerPtr& layer() const { return layer_; }
  const GenerationPtr& generation() const { return layer_->generation; }
  uint64_t size_bytes() const { return size_bytes_; }

  // `pieces`, one after the other, are the bytes of `extents`. Errors: those of the disk.
  absl::Status Write(StageLog& stage, CutNumber last_cut, absl::Span<const Extent> extents,
                     absl::Span<const std::string_view> pieces);
  absl::Status Truncate(StageLog& stage, CutNumber last_cut, uint64_t size_bytes);
  // Stages ranges that become those of an older version. `pin` keeps their bytes where they are.
  absl::Status StageReverts(StageLog& stage, CutNumber last_cut, absl::Span<const Revert> reverts,
                            std::shared_ptr<const int> pin);
  // A rollback copies a whole version of `size_bytes` into the head of a generation without a cut.
  // Call BeginCopy() before the copy: if the copy fails, its bytes are known. Call EndCopy() after
  // it: a sync beside the copy clears the mark, and may miss bytes.
  void BeginCopy(uint64_t size_bytes);
  void EndCopy(uint64_t copied_bytes);

  // Appends the record of `cut` to the stage, if it needs one, and fills in the layer. Call
  // Truncate() to request.size_bytes before it.
  absl::Status TakeCut(StageLog& stage, CutNumber cut, const CutRequest& request);
  // The layer went to the visible cuts, and `next`, of the same generation, is the open one.
  void Continue(LayerPtr next) { layer_ = std::move(next); }

  // Forgets all writes that are in no cut, and becomes kClosed. Cuts the stage back to `stage_end`,
  // and removes direct bytes from the head, which keeps `head_bytes`. If the generation has no cut,
  // removes its head, `head_name`. After an error stray bytes are left: the file must be recovered.
  absl::Status Drop(EnvTree& tree, StageLog& stage, StageEnd stage_end, uint64_t head_bytes,
                    const std::string& head_name);

 private:
  uint64_t Floor() const;
  absl::Status WriteDirect(uint64_t offset, absl::Span<const std::string_view> pieces);
  // The head's pages that touch `extent` no longer hold only the bytes of their direct writes.
  void ForgetSums(Extent extent);

  LayerPtr layer_;
  uint64_t size_bytes_ = 0;
  uint32_t page_size_bytes_ = 0;
  WriterFacts facts_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_WRITER_OPEN_WRITES_H_
