#include "base/hex.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "base/strings.h"

namespace h5mirror {

std::string HexOf(const Bytes16& bytes) { return absl::BytesToHexString(ToByteString(bytes)); }

absl::StatusOr<Bytes16> ParseHex16(std::string_view hex) {
  // absl's decoder reads non-digits as zeros, so they are refused first.
  const auto is_digit = [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)); };
  if (hex.size() != 32 || !std::all_of(hex.begin(), hex.end(), is_digit)) {
    return absl::InvalidArgumentError(
        StrCat("'", absl::CHexEscape(ToAbsl(hex.substr(0, 64))), "' is not 32 hex digits"));
  }
  return FromByteString(absl::HexStringToBytes(ToAbsl(hex)));
}

std::string ToByteString(const Bytes16& bytes) { return std::string(bytes.begin(), bytes.end()); }

absl::StatusOr<Bytes16> FromByteString(std::string_view bytes) {
  Bytes16 result;
  if (bytes.size() != result.size()) {
    return absl::InvalidArgumentError(
        StrCat("an identity has 16 bytes, this one has ", bytes.size()));
  }
  std::copy(bytes.begin(), bytes.end(), result.begin());
  return result;
}

}  // namespace h5mirror
