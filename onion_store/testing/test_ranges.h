// For the store's tests: reads of many ranges beside reads of one.
#ifndef H5MIRROR_ONION_STORE_TESTING_TEST_RANGES_H_
#define H5MIRROR_ONION_STORE_TESTING_TEST_RANGES_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "onion_store/file.h"

namespace h5mirror::store {

// Every other page, and of each third of these only a part; none for an empty file.
inline std::vector<Extent> ScatteredRanges(uint64_t size_bytes, uint64_t page_size_bytes) {
  std::vector<Extent> ranges;
  for (uint64_t at = 0; at < size_bytes; at += 2 * page_size_bytes) {
    const uint64_t skip = ranges.size() % 3 == 2 ? page_size_bytes / 4 : 0;
    if (at + skip >= size_bytes) break;
    ranges.push_back({at + skip, std::min(page_size_bytes - 2 * skip, size_bytes - at - skip)});
  }
  return ranges;
}

// Reads scattered ranges of a version or a pinned cut with the bytes `golden`. False: the bytes
// differ.
template <typename Reader>
bool ScatteredReadsMatch(Reader& reader, std::string_view golden, absl::Status* status) {
  const std::vector<Extent> ranges = ScatteredRanges(golden.size(), reader.page_size_bytes());
  std::string wanted;
  for (const Extent& range : ranges) wanted += golden.substr(range.offset, range.length);
  std::string bytes(wanted.size(), '\0');
  *status = reader.ReadRanges(ranges, absl::MakeSpan(bytes));
  return !status->ok() || bytes == wanted;
}

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_TESTING_TEST_RANGES_H_
