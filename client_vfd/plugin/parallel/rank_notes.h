// A rank's message to rank 0 at a collective moment: the pages that it wrote since the last one.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_RANK_NOTES_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_RANK_NOTES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client_vfd/plugin/parallel/noted_pages.h"

namespace h5mirror::vfd {

struct RankNotes {
  std::vector<NotedPages::Run> raw;
  std::vector<NotedPages::Run> metadata;
  bool has_failed = false;     // a call of this rank's has failed
  bool is_incomplete = false;  // it has also written where the driver could not see it

  bool HasChanges() const { return !raw.empty() || !metadata.empty() || is_incomplete; }
};

// Words of 64 bits in the byte order of the machine: flags, counts, then pairs of offset and end.
// All ranks of a program run one build on one kind of machine.
std::string ToBytes(const RankNotes& notes);
// Unset: these are no such bytes.
std::optional<RankNotes> NotesFromBytes(std::string_view bytes);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_RANK_NOTES_H_
