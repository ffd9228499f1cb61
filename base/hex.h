// 16-byte identities (file, session, request, incarnation) as bytes and as hex text.
#ifndef H5MIRROR_BASE_HEX_H_
#define H5MIRROR_BASE_HEX_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace h5mirror {

using Bytes16 = std::array<uint8_t, 16>;

// 32 lower-case digits.
std::string HexOf(const Bytes16& bytes);

// The inverse, either case. kInvalidArgument quotes the text.
absl::StatusOr<Bytes16> ParseHex16(std::string_view hex);

// The bytes as in a protobuf `bytes` field, and back. kInvalidArgument: there are not 16.
std::string ToByteString(const Bytes16& bytes);
absl::StatusOr<Bytes16> FromByteString(std::string_view bytes);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_HEX_H_
