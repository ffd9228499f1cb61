#include "server/settings/address_range.h"

#include <arpa/inet.h>
#include <string.h>

#include "absl/strings/numbers.h"
#include "base/strings.h"

namespace h5mirror::server {
namespace {

constexpr int kMappedBits = 96;  // before an IPv4 address

bool IsMapped(const std::array<uint8_t, 16>& address) {
  for (int i = 0; i < 10; ++i) {
    if (address[static_cast<size_t>(i)] != 0) return false;
  }
  return address[10] == 0xff && address[11] == 0xff;
}

// `bits` is set to the length of an address of its kind. False: no address.
bool ParseAddress(const std::string& text, AddressRange& range, int& bits) {
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) {
    range.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    memcpy(range.address.data() + 12, &v4, sizeof(v4));
    bits = 32;
    return true;
  }
  bits = 128;
  return inet_pton(AF_INET6, text.c_str(), range.address.data()) == 1;
}

uint8_t MaskOf(int bits, size_t byte) {
  const int left = bits - 8 * static_cast<int>(byte);
  if (left >= 8) return 0xff;
  return left <= 0 ? 0 : static_cast<uint8_t>(0xff << (8 - left));
}

}  // namespace

bool AddressRange::Contains(const std::array<uint8_t, 16>& other) const {
  for (size_t i = 0; i < address.size(); ++i) {
    if (((address[i] ^ other[i]) & MaskOf(bits, i)) != 0) return false;
  }
  return true;
}

std::string AddressRange::ToString() const {
  const bool is_v4 = IsMapped(address) && bits >= kMappedBits;
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(is_v4 ? AF_INET : AF_INET6, address.data() + (is_v4 ? 12 : 0), text, sizeof(text));
  return bits == 128 ? std::string(text)
                     : StrCat(std::string_view(text), "/", is_v4 ? bits - kMappedBits : bits);
}

absl::StatusOr<AddressRange> AddressRange::Parse(std::string_view text) {
  const auto wrong = [text](std::string_view why) {
    return absl::InvalidArgumentError(StrCat("\"", text, "\": ", why));
  };
  const size_t slash = text.find('/');
  AddressRange range;
  int most = 0;
  if (!ParseAddress(std::string(text.substr(0, slash)), range, most)) {
    return wrong("is no address or range, as in 192.0.2.7, 192.0.2.0/24, 2001:db8::/32");
  }
  if (slash == std::string_view::npos) return range;
  int bits = 0;
  if (!absl::SimpleAtoi(ToAbsl(text.substr(slash + 1)), &bits) || bits < 0 || bits > most) {
    return wrong(StrCat("the length behind the '/' must be in 0..", most));
  }
  range.bits = bits + 128 - most;
  AddressRange first = range;
  for (size_t i = 0; i < 16; ++i) first.address[i] &= MaskOf(range.bits, i);
  if (first.address != range.address) return wrong(StrCat("is within ", first.ToString()));
  return range;
}

}  // namespace h5mirror::server
