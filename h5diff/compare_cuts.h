// Which objects each cut of a live file has changed, for `h5mirror watch`.
#ifndef H5MIRROR_H5DIFF_COMPARE_CUTS_H_
#define H5MIRROR_H5DIFF_COMPARE_CUTS_H_

#include <memory>
#include <string>

#include "sync/cut_changes.h"

namespace h5mirror::tools {

// The server holds the cut that was looked at last, and is asked for the differences of the next
// one: the metadata comes with that, and raw data is not looked at. The walk is that of
// `h5mirror diff` (h5diff/walk.h), within 16 MiB of further pages and two seconds; pages that
// were read stay in memory, up to 128 MiB, for as long as no cut changes them.
std::unique_ptr<CutComparer> MakeCutComparer(rpc::Client& client, const std::string& file);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_COMPARE_CUTS_H_
