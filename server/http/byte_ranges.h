// The bytes that a request's Range header asks for (RFC 9110, 14).
#ifndef H5MIRROR_SERVER_HTTP_BYTE_RANGES_H_
#define H5MIRROR_SERVER_HTTP_BYTE_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/extent.h"

namespace h5mirror::server {

// A request with more ranges is refused, because each range costs a header in the answer.
inline constexpr size_t kByteRangesMax = 256;

struct ByteRanges {
  enum class Kind : uint8_t {
    kWhole,  // the header is to be ignored: another unit, or ranges that overlap so much that the
             // whole is shorter
    kSome,
    kNone,  // it is malformed, no range is within the file, or there are too many
  };
  Kind kind = Kind::kWhole;
  std::vector<Extent> ranges;  // kSome: as the client has ordered them, cut off at the end
};

// `header`: the value of Range. `size_bytes`: of the file.
ByteRanges ParseByteRanges(std::string_view header, uint64_t size_bytes);

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_HTTP_BYTE_RANGES_H_
