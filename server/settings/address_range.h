// A range of network addresses, as in `--from 192.0.2.0/24`.
#ifndef H5MIRROR_SERVER_SETTINGS_ADDRESS_RANGE_H_
#define H5MIRROR_SERVER_SETTINGS_ADDRESS_RANGE_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace h5mirror::server {

struct AddressRange {
  std::array<uint8_t, 16> address{};  // IPv6, or IPv4 as ::ffff:a.b.c.d
  int bits = 128;                     // of `address` that count

  bool Contains(const std::array<uint8_t, 16>& other) const;
  // "192.0.2.0/24", "2001:db8::/32"; without a length, one address.
  std::string ToString() const;
  // kInvalidArgument quotes the text: no address, a length out of range, or bits behind the length.
  static absl::StatusOr<AddressRange> Parse(std::string_view text);
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_SETTINGS_ADDRESS_RANGE_H_
