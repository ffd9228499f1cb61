#include "h5edit/bytes_text.h"

#include <cstddef>

namespace h5mirror::edit {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

// -1: none.
int HexDigit(char c) {
  const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  const size_t digit = kDigits.find(lower);
  return digit == std::string_view::npos ? -1 : static_cast<int>(digit);
}

}  // namespace

bool ParseBytes(std::string_view text, std::string* bytes) {
  bytes->clear();
  const bool is_number = text.starts_with("0x") || text.starts_with("0X");
  if (is_number) text.remove_prefix(2);
  if (!is_number && text.find(':') == std::string_view::npos) return false;
  while (text.size() >= 2) {
    const int high = HexDigit(text[0]), low = HexDigit(text[1]);
    if (high < 0 || low < 0) return false;
    *bytes += static_cast<char>(high * 16 + low);
    text.remove_prefix(2);
    if (text.empty()) return true;
    if (is_number) continue;
    if (text[0] != ':') return false;
    text.remove_prefix(1);
  }
  return false;
}

std::string BytesText(std::string_view bytes) {
  std::string text = bytes.size() == 1 ? "0x" : "";
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (i > 0) text += ':';
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace h5mirror::edit
