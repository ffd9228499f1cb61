#include "cluster/addresses.h"

namespace h5mirror::cluster {

std::vector<std::string> SplitAddresses(std::string_view text) {
  // The brackets around an IPv6 address are within: "v2:[::1]:0/5".
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  std::vector<std::string> addresses;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view address = text.substr(0, comma);
    if (!address.empty()) addresses.emplace_back(address);
    text = comma == text.npos ? std::string_view() : text.substr(comma + 1);
  }
  return addresses;
}

}  // namespace h5mirror::cluster
