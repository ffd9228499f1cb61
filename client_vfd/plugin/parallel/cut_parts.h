// The parts of a parallel file's cut: which rank sends which pages (parallel_senders=node).
//
// Rank 0 sends metadata, what its own node's ranks wrote, and what is too little to be worth a
// stream. The first rank of each other node sends the rest of what that node's ranks wrote. No page
// is in two parts.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_CUT_PARTS_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_CUT_PARTS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client_vfd/api/session_api.h"
#include "client_vfd/plugin/parallel/noted_pages.h"
#include "client_vfd/plugin/parallel/rank_notes.h"

namespace h5mirror::vfd {

// By rank, the first rank on the same host. `hosts` are names, by rank.
std::vector<int> SendersOf(const std::vector<std::string>& hosts);

// Rank 0 sends for the nodes whose sender cannot read the file. `can_read` is by rank.
void LeaveToRank0(const std::vector<bool>& can_read, std::vector<int>* senders);

struct CutPart {
  int rank = 0;                       // sends it
  std::vector<NotedPages::Run> runs;  // in order, apart, within the file
};

struct SplitCut {
  RankNotes own;  // of rank 0
  std::vector<CutPart> parts;
};

// `notes` and `senders` are by rank, and no notes are incomplete. A part of less than
// `part_bytes_min` is rank 0's.
SplitCut SplitByNode(const std::vector<RankNotes>& notes, const std::vector<int>& senders,
                     uint64_t size_bytes, uint64_t part_bytes_min);

// As session_api.h has them.
std::vector<H5mRange> RangesOf(const CutPart& part);

// Rank 0's message to the others. No parts: it sends all.
struct PartPlan {
  H5mPartTicket ticket{};
  std::string name;  // under the server's root
  std::vector<CutPart> parts;
};

// In the byte order of the machine, as RankNotes.
std::string ToBytes(const PartPlan& plan);
// Unset: these are no such bytes.
std::optional<PartPlan> PlanFromBytes(std::string_view bytes);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_PARALLEL_CUT_PARTS_H_
