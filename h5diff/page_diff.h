// The pages whose bytes differ.
#ifndef H5MIRROR_H5DIFF_PAGE_DIFF_H_
#define H5MIRROR_H5DIFF_PAGE_DIFF_H_

#include "absl/functional/function_ref.h"
#include "h5diff/version_pages.h"

namespace h5mirror::tools {

// Pages one after the other that all differ.
struct PageDifference {
  uint64_t page = 0;
  uint64_t page_count = 0;
  uint64_t byte_count = 0;  // that differ in them
};

// Reads the changed ranges of both versions and calls `sink` in order of pages. A page that was
// written with what it held is none of them. What lies beyond the end of one version counts as
// zeros there.
absl::Status ComparePages(VersionPages& pages, absl::FunctionRef<void(const PageDifference&)> sink);

}  // namespace h5mirror::tools

#endif  // H5MIRROR_H5DIFF_PAGE_DIFF_H_
