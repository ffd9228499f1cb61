// Findings as people and programs read them.
#ifndef H5MIRROR_H5DIFF_CHANGE_TEXT_H_
#define H5MIRROR_H5DIFF_CHANGE_TEXT_H_

#include <string>

#include "cli/output/json.h"
#include "h5diff/change.h"

namespace h5mirror::tools {

// One line, or one and some that are indented; with no newline at the end.
//   + /g/new  dataset float64 (10,)
//   - /g/old  group
//   > /g/b  dataset int32 (3,), was /g/a
//   ~ /g/temp  attribute units: "K" -> "C"
//   ? /g/x  data cannot be read: ...
std::string ChangeText(const Change& change);
// The same on one line, where the object's own path is known: `data: 4 elements in 2 chunks`.
std::string ChangeSummary(const Change& change);
// Keys are listed in h5mirror.1.md.
Json ChangeToJson(const Change& change);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_CHANGE_TEXT_H_
