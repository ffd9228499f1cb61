// Strings between the standard library and Abseil. Debian builds Abseil with a string_view of
// its own (ABSL_OPTION_USE_STD_STRING_VIEW 0), which converts from and to std::string but not
// from and to std::string_view. Our interfaces speak std::string_view.
#ifndef H5MIRROR_BASE_STRINGS_H_
#define H5MIRROR_BASE_STRINGS_H_

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace h5mirror {

inline absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view ToStd(absl::string_view text) { return {text.data(), text.size()}; }

namespace strings_internal {

// `part` as a type that absl::StrCat takes.
template <typename T>
decltype(auto) Piece(const T& part) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return ToAbsl(part);
  } else {
    return (part);
  }
}

}  // namespace strings_internal

// absl::StrCat and absl::StrAppend for std::string_view too.
template <typename... T>
std::string StrCat(const T&... parts) {
  return absl::StrCat(strings_internal::Piece(parts)...);
}

template <typename... T>
void StrAppend(std::string* text, const T&... parts) {
  absl::StrAppend(text, strings_internal::Piece(parts)...);
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_STRINGS_H_
