// UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing beyond U+10FFFF.
#ifndef H5MIRROR_BASE_UTF8_H_
#define H5MIRROR_BASE_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace h5mirror {

// Bytes of the character that `text`, which is not empty, begins with: 1 to 4; 0: it is none.
size_t CharacterBytes(std::string_view text);

// Where the character begins that the byte at `at` belongs to.
size_t CharacterStart(std::string_view text, size_t at);

// Text from elsewhere (names, comments, users) on one line: control characters, which could
// drive a terminal, and broken UTF-8 become \xNN.
std::string Printable(std::string_view text);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_UTF8_H_
