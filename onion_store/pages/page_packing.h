// Compression of saved pages. On disk: docs/reference/format.md, "Pages records".
#ifndef H5MIRROR_ONION_STORE_PAGES_PAGE_PACKING_H_
#define H5MIRROR_ONION_STORE_PAGES_PAGE_PACKING_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace h5mirror::store {

// The most bytes of pages that are packed as one. A reader of one page unpacks all of them.
constexpr uint64_t kPackedPagesBytes = 64 << 10;

// Thread-safe; each thread keeps some hundred kilobytes for it.
//
// Fills `*packed`. False: the result would not be smaller than `bytes` by an eighth, and `*packed`
// is unspecified.
bool PackPages(std::string_view bytes, std::string* packed);

// Fills `out`; the caller knows its length. Does not trust `packed`: no number in it makes this
// take memory. kDataLoss: `packed` is no packing, or of another length.
absl::Status UnpackPages(std::string_view packed, absl::Span<char> out);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_PAGE_PACKING_H_
