// The number of a cut as people read it.
//
// Each time that a server opens a file anew, its cuts go on at the time of day in microseconds
// (docs/design/031-recovery.md), which is 16 digits. Its last six tell the cuts of a file apart as
// well.
#ifndef H5MIRROR_BASE_CUT_TEXT_H_
#define H5MIRROR_BASE_CUT_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace h5mirror {

// "13", "999999999"; "..385517", the last six digits, of a number from 10^9 on.
std::string CutText(int64_t cut);

// A number, whole or as CutText() writes it: that is the last one up to `newest` that ends so.
// kInvalidArgument quotes the text: it is neither, or no number up to `newest` ends so.
absl::StatusOr<int64_t> ParseCut(std::string_view text, int64_t newest);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_CUT_TEXT_H_
