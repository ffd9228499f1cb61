#include "server/http/byte_ranges.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr std::string_view kUnit = "bytes=";

// A number that is too large is the largest one. nullopt: it has other characters than digits.
std::optional<uint64_t> ParsePosition(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), absl::ascii_isdigit)) {
    return std::nullopt;
  }
  uint64_t position = 0;
  if (absl::SimpleAtoi(ToAbsl(text), &position)) return position;
  return std::numeric_limits<uint64_t>::max();
}

// One range, within `size`; of length 0 if no byte of it is. nullopt: it is malformed.
std::optional<Extent> ParseRange(std::string_view text, uint64_t size) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::optional<uint64_t> last = ParsePosition(text.substr(dash + 1));
  const bool is_open = dash + 1 == text.size();
  if (!is_open && !last) return std::nullopt;
  if (dash == 0) {
    if (is_open) return std::nullopt;
    const uint64_t length = std::min(*last, size);
    return Extent{size - length, length};
  }
  const std::optional<uint64_t> first = ParsePosition(text.substr(0, dash));
  if (!first || (last && *last < *first)) return std::nullopt;
  if (*first >= size) return Extent{0, 0};
  const uint64_t end = is_open || *last >= size ? size : *last + 1;
  return Extent{*first, end - *first};
}

}  // namespace

ByteRanges ParseByteRanges(std::string_view header, uint64_t size_bytes) {
  if (!absl::StartsWithIgnoreCase(ToAbsl(header), ToAbsl(kUnit))) return {};
  const ByteRanges none{ByteRanges::Kind::kNone, {}};
  ByteRanges wanted{ByteRanges::Kind::kSome, {}};
  uint64_t left = size_bytes;
  bool is_longer = false;
  size_t count = 0;
  for (const absl::string_view part :
       absl::StrSplit(ToAbsl(header.substr(kUnit.size())), ',', absl::SkipWhitespace())) {
    const auto range = ParseRange(ToStd(absl::StripAsciiWhitespace(part)), size_bytes);
    if (!range || ++count > kByteRangesMax) return none;
    if (range->length == 0) continue;
    is_longer = is_longer || range->length > left;
    left -= std::min(left, range->length);
    wanted.ranges.push_back(*range);
  }
  if (wanted.ranges.empty()) return none;
  if (is_longer) return {};
  return wanted;
}

}  // namespace h5mirror::server
