#include "h5edit/bytes_text.h"

#include <algorithm>
#include <cstddef>

#include "base/utf8.h"

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

std::string QuotedWith(char quote, std::string_view text,
                       std::string (*escape)(unsigned char byte)) {
  std::string quoted(1, quote);
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    const size_t shown = PrintableBytes(text.substr(at));
    const size_t length = shown > 0 ? shown : std::max<size_t>(CharacterBytes(text.substr(at)), 1);
    if (c == quote || c == '\\') {
      quoted += {'\\', c};
    } else if (shown > 0) {
      quoted += text.substr(at, length);
    } else {
      for (const char byte : text.substr(at, length))
        quoted += escape(static_cast<unsigned char>(byte));
    }
    at += length;
  }
  return quoted + quote;
}

}  // namespace h5mirror::edit
