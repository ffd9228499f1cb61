// The file's side of a pinned cut: docs/design/003-cuts-and-pins.md.
#ifndef H5MIRROR_ONION_STORE_FILE_PINS_PINNED_CUT_H_
#define H5MIRROR_ONION_STORE_FILE_PINS_PINNED_CUT_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "onion_store/file/cuts/file_layers.h"

namespace h5mirror::store {

// The places of a pinned cut's bytes. Constant except for the data of the layers: a layer may take
// in the next layer of `layers` (FileImpl::merge_mutex_). That changes no byte at this cut.
struct PinnedContent {
  PinnedContent(std::shared_ptr<Generation> generation_in,
                std::vector<std::shared_ptr<CutLayer>> layers_in, uint64_t first_pages_in)
      : generation(std::move(generation_in)),
        layers(std::move(layers_in)),
        segments(layers.empty() ? StageSegments() : layers.back()->segments),
        first_pages(first_pages_in) {
    for (const auto& segment : segments) ++segment->reader_count;
  }
  ~PinnedContent() {
    for (const auto& segment : segments) --segment->reader_count;
  }
  PinnedContent(const PinnedContent&) = delete;

  const std::shared_ptr<Generation> generation;
  // The layers up to the cut, oldest first, that the head did not hold when the cut was pinned.
  const std::vector<std::shared_ptr<CutLayer>> layers;
  const StageSegments segments;  // these hold the layers' staged bytes
  // Pinned pages from this number on may hold pages of the head as it was at the pin.
  const uint64_t first_pages;
};

struct PinnedCut {
  CutInfo info;
  int holder_count = 0;  // under the file's lock

  std::shared_ptr<const PinnedContent> content() const {
    absl::MutexLock lock(&mutex);
    return content_or_null;
  }
  // Ends the pin. The caller destroys the result when it holds no lock.
  std::shared_ptr<const PinnedContent> Expire() {
    absl::MutexLock lock(&mutex);
    return std::exchange(content_or_null, nullptr);
  }

  mutable absl::Mutex mutex;
  std::shared_ptr<const PinnedContent> content_or_null ABSL_GUARDED_BY(mutex);  // null: expired
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_PINS_PINNED_CUT_H_
