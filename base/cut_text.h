// The number of a cut, for people.
//
// When a server opens a file, the next cut's number is the time of day in microseconds: 16 digits
// (docs/design/031-recovery.md). The last six digits are enough to tell the cuts of a file apart.
#ifndef H5MIRROR_BASE_CUT_TEXT_H_
#define H5MIRROR_BASE_CUT_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace h5mirror {

// The whole number below 10^9: "13", "999999999". From 10^9 on the last six digits: "..385517".
std::string CutText(int64_t cut);

// The number of a cut, from its whole text or from CutText(). Six digits mean the largest number up
// to `newest` that ends with them. kInvalidArgument: the text is neither, or no number up to
// `newest` ends so; the message quotes the text.
absl::StatusOr<int64_t> ParseCut(std::string_view text, int64_t newest);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_CUT_TEXT_H_
