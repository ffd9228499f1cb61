// The number of a cut, for people.
//
// When a server opens a file, its cuts go on at the time of day in microseconds
// (docs/design/031-recovery.md), a number of 16 digits. The last six are enough to tell the cuts of
// a file apart.
#ifndef H5MIRROR_BASE_CUT_TEXT_H_
#define H5MIRROR_BASE_CUT_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace h5mirror {

// "13", "999999999"; "..385517", the last six digits, of a number from 10^9 on.
std::string CutText(int64_t cut);

// The number of a cut, from its whole text or from CutText(). The latter is the largest number up
// to `newest` that ends so. kInvalidArgument: it is neither, or no number up to `newest` ends so;
// the message quotes the text.
absl::StatusOr<int64_t> ParseCut(std::string_view text, int64_t newest);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_CUT_TEXT_H_
