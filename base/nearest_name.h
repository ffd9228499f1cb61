// "Did you mean": the known name nearest to a mistyped one.
#ifndef H5MIRROR_BASE_NEAREST_NAME_H_
#define H5MIRROR_BASE_NEAREST_NAME_H_

#include <cstddef>
#include <string_view>

#include "absl/types/span.h"

namespace h5mirror {

// The name with the fewest edits (a character inserted, removed or replaced) from `word`, at most
// `edits_max`; of several, the first. Empty: no name is that near, or `word` is longer than 100
// bytes.
std::string_view NearestName(std::string_view word, absl::Span<const std::string_view> names,
                             size_t edits_max = 3);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_NEAREST_NAME_H_
