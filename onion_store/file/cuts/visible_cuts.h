// The cuts of a file that are visible, from the head to the newest one.
//
//   base's head <- layers[0] <- ... <- layers.back(), which is `last` | the next one has `next`
//
// A cut goes in behind, and leaves in front once the head holds it. Where `layers` is empty, the
// head holds `last`. A new generation begins with a layer of its own: until the ones before it are
// applied, they are of the generation before.
#ifndef H5MIRROR_ONION_STORE_FILE_CUTS_VISIBLE_CUTS_H_
#define H5MIRROR_ONION_STORE_FILE_CUTS_VISIBLE_CUTS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "onion_store/file/cuts/file_layers.h"
#include "onion_store/file/cuts/last_cut.h"

namespace h5mirror::store {

// The file's state lock guards it.
struct VisibleCuts {
  std::deque<std::shared_ptr<CutLayer>> layers;  // closed and not applied, oldest first
  LastCut last;
  CutNumber next = 1;                // the number of the next cut
  std::shared_ptr<Generation> base;  // the one that has the newest cut; null: there is none
  std::map<int64_t, std::shared_ptr<Generation>> old_generations;  // by number

  // The newest cut is of `generation` from now on. Readers of the generation before go on with it
  // as it is: while its head gets another name, a look at the names may find the new one.
  void MoveTo(std::shared_ptr<Generation> generation) {
    if (base != nullptr && base != generation) old_generations[base->number] = base;
    base = std::move(generation);
  }
  // The layers over the head of `generation`.
  std::vector<std::shared_ptr<CutLayer>> LayersOf(const Generation& generation) const {
    std::vector<std::shared_ptr<CutLayer>> found;
    for (const auto& layer : layers) {
      if (layer->generation.get() == &generation) found.push_back(layer);
    }
    return found;
  }
  // The first segment of the stage that a layer besides `applied` needs, at most `end`.
  uint64_t FirstSegment(const CutLayer& applied, uint64_t end) const {
    for (const auto& layer : layers) {
      if (layer.get() != &applied) end = std::min(end, layer->first_segment);
    }
    return end;
  }
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_FILE_CUTS_VISIBLE_CUTS_H_
