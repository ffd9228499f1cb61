// Checks that hold for every list of changes, for the store's tests.
#ifndef H5MIRROR_ONION_STORE_TESTING_CHANGES_CHECK_H_
#define H5MIRROR_ONION_STORE_TESTING_CHANGES_CHECK_H_

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "onion_store/file.h"

namespace h5mirror::store {

inline std::vector<Extent> ReadChanges(ChangeReader& reader) {
  std::vector<Extent> all, ranges;
  for (bool more = true; more;) {
    auto next = reader.Next(&ranges);
    EXPECT_TRUE(next.ok()) << next.status();
    more = next.value_or(false);
    for (const Extent& range : ranges) {
      EXPECT_GT(range.length, 0u);
      EXPECT_TRUE(all.empty() || range.offset >= all.back().end()) << range.offset;
      all.push_back(range);
    }
  }
  return all;
}

// The versions have the bytes `one` and `other`. Expects that they are equal outside of the ranges,
// and that the ranges are of whole pages but at the end of either. Of two generations no page
// within a range may be equal.
inline void CheckChanges(File& file, const VersionInfo& from, const VersionInfo& to,
                         std::string one, std::string other) {
  SCOPED_TRACE(testing::Message() << "changes from " << from.version << " to " << to.version);
  auto reader = file.OpenChanges(from.version, to.version);
  ASSERT_TRUE(reader.ok()) << reader.status();
  const uint64_t page = (*reader)->page_size_bytes();
  const uint64_t shared = std::min(one.size(), other.size());
  const uint64_t end = std::max(one.size(), other.size());
  one.resize(end);
  other.resize(end);
  uint64_t at = 0;
  for (const Extent& range : ReadChanges(**reader)) {
    EXPECT_TRUE(range.offset % page == 0 || range.offset == shared) << range.offset;
    EXPECT_TRUE(range.end() % page == 0 || range.end() == end) << range.end();
    ASSERT_LE(range.end(), end);
    ASSERT_TRUE(one.compare(at, range.offset - at, other, at, range.offset - at) == 0)
        << "a change between " << at << " and " << range.offset << " was not told";
    at = range.end();
    for (uint64_t i = range.offset; from.generation != to.generation && i < at; i += page) {
      EXPECT_NE(one.substr(i, page), other.substr(i, page)) << "page " << i / page << " is equal";
    }
  }
  EXPECT_TRUE(one.compare(at, end - at, other, at, end - at) == 0)
      << "a change after " << at << " was not told";
}

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_TESTING_CHANGES_CHECK_H_
