#include "h5perf_serial/sizes.h"

#include <cctype>
#include <charconv>
#include <limits>

#include "absl/strings/numbers.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::perf {
namespace {

int ShiftOf(char suffix) {
  switch (std::toupper(static_cast<unsigned char>(suffix))) {
    case 'K':
      return 10;
    case 'M':
      return 20;
    case 'G':
      return 30;
    default:
      return -1;
  }
}

}  // namespace

absl::StatusOr<uint64_t> ParseSize(std::string_view text) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  int shift = 0;
  if (rest != end) shift = rest + 1 == end ? ShiftOf(*rest) : -1;
  if (error != std::errc() || shift < 0 ||
      number > (std::numeric_limits<uint64_t>::max() >> shift)) {
    return absl::InvalidArgumentError(
        StrCat("illegal size '", text, "': a whole number, with K, M or G after it if wanted"));
  }
  return number << shift;
}

absl::StatusOr<Sizes> ParseSizes(std::string_view text) {
  Sizes sizes;
  for (const std::string& part : SplitList(text)) {
    H5M_ASSIGN_OR_RETURN(const uint64_t size, ParseSize(part));
    sizes.push_back(size);
  }
  return sizes;
}

absl::StatusOr<int64_t> ParseInteger(std::string_view text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end) {
    return absl::InvalidArgumentError(StrCat("'", text, "' is no whole number"));
  }
  return number;
}

absl::StatusOr<double> ParseNumber(std::string_view text) {
  double number = 0;
  if (!absl::SimpleAtod(ToAbsl(text), &number)) {
    return absl::InvalidArgumentError(StrCat("'", text, "' is no number"));
  }
  return number;
}

std::vector<std::string> SplitList(std::string_view text) {
  std::vector<std::string> parts;
  for (size_t start = 0;;) {
    const size_t comma = text.find(',', start);
    parts.emplace_back(text.substr(start, comma - start));
    if (comma == std::string_view::npos) return parts;
    start = comma + 1;
  }
}

std::string SizeText(uint64_t size) {
  if (size == 0) return "0";
  for (const auto& [shift, unit] : {std::pair{30, "GB"}, {20, "MB"}, {10, "KB"}}) {
    if (size % (uint64_t{1} << shift) == 0) return StrCat(size >> shift, unit);
  }
  return StrCat(size);
}

std::string SizesText(const Sizes& sizes) {
  std::string text;
  for (const uint64_t size : sizes) StrAppend(&text, SizeText(size), " ");
  return text;
}

uint64_t Product(const Sizes& sizes) {
  if (sizes.empty()) return 0;
  uint64_t product = 1;
  for (const uint64_t size : sizes) product *= size;
  return product;
}

}  // namespace h5mirror::perf
