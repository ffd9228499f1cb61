#include "h5diff/page_diff.h"

#include <algorithm>

#include "base/status_macros.h"

namespace h5mirror::tools {
namespace {

constexpr uint64_t kReadBytes = 1 << 20;

uint64_t CountDifferences(std::string_view one, std::string_view other) {
  uint64_t count = 0;
  for (size_t i = 0; i < one.size(); ++i) count += one[i] != other[i] ? 1 : 0;
  return count;
}

// Calls `take` with each part of a page in the changed ranges, and the bytes that differ in it.
absl::Status CompareEach(VersionPages& pages,
                         absl::FunctionRef<void(uint64_t page, uint64_t byte_count)> take) {
  const uint64_t page_bytes = pages.page_size_bytes();
  std::string one, other;
  for (const Extent& range : pages.changed().ToVector()) {
    for (uint64_t at = range.offset; at < range.end();) {
      const uint64_t length = std::min(kReadBytes - at % page_bytes, range.end() - at);
      one.resize(length);
      other.resize(length);
      H5M_RETURN_IF_ERROR(pages.Read(Side::kOld, at, absl::MakeSpan(one)));
      H5M_RETURN_IF_ERROR(pages.Read(Side::kNew, at, absl::MakeSpan(other)));
      for (uint64_t i = 0; i < length;) {
        const uint64_t part = std::min(page_bytes - (at + i) % page_bytes, length - i);
        take((at + i) / page_bytes, CountDifferences(std::string_view(one).substr(i, part),
                                                     std::string_view(other).substr(i, part)));
        i += part;
      }
      at += length;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ComparePages(VersionPages& pages,
                          absl::FunctionRef<void(const PageDifference&)> sink) {
  PageDifference run;
  const auto take = [&](uint64_t page, uint64_t byte_count) {
    if (byte_count == 0) return;
    // A page that holds the end of one version may come in two parts.
    const bool same = run.page_count > 0 && page == run.page + run.page_count - 1;
    if (!same && run.page_count > 0 && page != run.page + run.page_count) {
      sink(run);
      run = {};
    }
    if (run.page_count == 0) run.page = page;
    run.page_count += same ? 0 : 1;
    run.byte_count += byte_count;
  };
  const absl::Status compared = CompareEach(pages, take);
  if (run.page_count > 0) sink(run);
  return compared;
}

}  // namespace h5mirror::tools
