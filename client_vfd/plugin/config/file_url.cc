#include "client_vfd/plugin/config/file_url.h"

namespace h5mirror::vfd {
namespace {

int HexDigit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

// A '%' that no byte follows stands for itself.
std::string Unquote(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    if (low < 0) {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return plain;
}

bool Skip(std::string_view prefix, std::string_view* text) {
  if (text->substr(0, prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::optional<FileUrl> ParseFileUrl(std::string_view text) {
  const bool is_socket = Skip("h5mirror+unix://", &text);
  if (!is_socket && !Skip("h5mirror://", &text)) return std::nullopt;
  constexpr std::string_view kQuery = "?name=";
  const size_t split = is_socket ? text.find(kQuery) : text.find('/');
  if (split == std::string_view::npos) return std::nullopt;
  const std::string_view place = text.substr(0, split);
  const std::string_view name = text.substr(split + (is_socket ? kQuery.size() : 1));
  const bool is_good =
      is_socket
          ? place.size() > 1 && place.front() == '/' && name.find('&') == std::string_view::npos
          : name.find('?') == std::string_view::npos && place.find('@') == std::string_view::npos;
  if (!is_good || name.empty() || name.find('#') != std::string_view::npos) return std::nullopt;
  return FileUrl{is_socket ? "unix:" + Unquote(place) : std::string(place), Unquote(name)};
}

}  // namespace h5mirror::vfd
