#include "base/utf8.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace h5mirror {
namespace {

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The length of a character that begins with `lead`; 0: no character does.
size_t BytesByLead(unsigned char lead) {
  return lead < 0x80   ? 1
         : lead < 0xC2 ? 0
         : lead < 0xE0 ? 2
         : lead < 0xF0 ? 3
         : lead < 0xF5 ? 4
                       : 0;
}

// The first two bytes show overlong forms, surrogates, and characters beyond U+10FFFF (RFC 3629,
// 4).
bool IsNoCharacter(unsigned char lead, unsigned char second) {
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool beyond = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
  return overlong || beyond;
}

// C0, DEL, and C1 (two bytes in UTF-8, 0xc2 0x80..0x9f).
bool IsControl(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return lead < 0x20 || lead == 0x7f;
  return sequence.size() == 2 && lead == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
}

// The code point of a character of `CharacterBytes(sequence)` bytes.
char32_t CodePoint(std::string_view sequence) {
  const auto lead = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return lead;
  char32_t point = lead & (0x7fu >> sequence.size());
  for (const char c : sequence.substr(1))
    point = point << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return point;
}

struct Range {
  char32_t first, last;
};

// UnicodeData.txt 15.0: general categories Cf, Zl and Zp, but for the signs of Arabic and others
// that are visible (U+0600..0605, 06DD, 070F, 0890, 0891, 08E2, 110BD, 110CD, 13430..1343F); and
// the fillers of Hangul and the selectors of variants, which are not visible either.
constexpr Range kUnseen[] = {
    {0x00ad, 0x00ad}, {0x034f, 0x034f},   {0x061c, 0x061c},   {0x115f, 0x1160},
    {0x17b4, 0x17b5}, {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f}, {0x3164, 0x3164},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},
    {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

bool IsUnseen(std::string_view sequence) {
  const char32_t point = CodePoint(sequence);
  return std::any_of(std::begin(kUnseen), std::end(kUnseen), [point](const Range& range) {
    return point >= range.first && point <= range.last;
  });
}

// Without absl: the plugin does not link it.
void AppendHex(std::string& result, std::string_view prefix, int digits, uint32_t value) {
  result += prefix;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    result += "0123456789abcdef"[value >> shift & 0xf];
}

bool IsPlain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._@:/+-").find(c) != std::string_view::npos;
}

}  // namespace

size_t CharacterBytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = BytesByLead(lead);
  if (length == 0 || length > text.size()) return 0;
  if (!std::all_of(text.begin() + 1, text.begin() + length, IsContinuation)) return 0;
  if (length > 1 && IsNoCharacter(lead, static_cast<unsigned char>(text[1]))) return 0;
  return length;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = CharacterBytes(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

size_t CharacterStart(std::string_view text, size_t at) {
  while (at > 0 && at < text.size() && IsContinuation(text[at])) --at;
  return at;
}

size_t PrintableBytes(std::string_view text) {
  const size_t length = CharacterBytes(text);
  if (length == 0) return 0;
  const std::string_view character = text.substr(0, length);
  return IsControl(character) || IsUnseen(character) ? 0 : length;
}

std::string Printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t shown = PrintableBytes(text);
    const size_t length = shown > 0 ? shown : std::max<size_t>(CharacterBytes(text), 1);
    if (shown > 0) {
      result.append(text.substr(0, length));
    } else {
      for (const char c : text.substr(0, length))
        AppendHex(result, "\\x", 2, static_cast<unsigned char>(c));
    }
    text.remove_prefix(length);
  }
  return result;
}

std::string PrintableJson(std::string_view json) {
  std::string result;
  result.reserve(json.size());
  while (!json.empty()) {
    const size_t shown = json[0] == '\n' ? 1 : PrintableBytes(json);
    const size_t length = shown > 0 ? shown : std::max<size_t>(CharacterBytes(json), 1);
    const std::string_view character = json.substr(0, length);
    json.remove_prefix(length);
    if (shown > 0) {
      result.append(character);
      continue;
    }
    const char32_t point = CharacterBytes(character) == 0 ? 0xfffd : CodePoint(character);
    if (point < 0x10000) {
      AppendHex(result, "\\u", 4, static_cast<uint32_t>(point));
    } else {  // RFC 8259, section 7: a pair of surrogates.
      const uint32_t rest = static_cast<uint32_t>(point) - 0x10000;
      AppendHex(result, "\\u", 4, 0xd800 | rest >> 10);
      AppendHex(result, "\\u", 4, 0xdc00 | (rest & 0x3ff));
    }
  }
  return result;
}

std::string Quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : Printable(text)) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string LogValue(std::string_view text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), IsPlain);
  return plain ? std::string(text) : Quoted(text);
}

}  // namespace h5mirror
