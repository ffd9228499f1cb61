// Compression of saved pages. On disk: docs/reference/format.md, "Pages records".
#ifndef H5MIRROR_ONION_STORE_PAGES_PAGE_PACKING_H_
#define H5MIRROR_ONION_STORE_PAGES_PAGE_PACKING_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace h5mirror::store {

// Pages that are packed as one: whoever wants one of them unpacks all.
constexpr uint64_t kPackedPagesBytes = 64 << 10;

// Thread-safe; each thread keeps some hundred kilobytes for it.
//
// Fills `*packed`; false where that would not be an eighth smaller than `bytes`, and then `*packed`
// is worth nothing.
bool PackPages(std::string_view bytes, std::string* packed);

// Fills `out`, whose length is known from elsewhere: nothing in `packed` is trusted, and no memory
// is taken for what it says. kDataLoss: it is no such packing, or of another length.
absl::Status UnpackPages(std::string_view packed, absl::Span<char> out);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_PAGES_PAGE_PACKING_H_
