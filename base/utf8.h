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

// Bytes of the character that `text`, which is not empty, begins with, where it is printed as it
// is; 0: it must be escaped, as Printable() does.
size_t PrintableBytes(std::string_view text);

// Text from elsewhere (names, comments, users, messages) on one line, as it is read: control
// characters, which could drive a terminal or begin another line, characters that are not seen or
// turn the order of others round (Unicode's Cf, Zl and Zp: U+200B, U+202E, U+2028, tags, ...), and
// broken UTF-8 become \xNN for each byte, as $'...' of bash takes them. Does nothing to what it has
// made before.
std::string Printable(std::string_view text);

// A JSON text in which all that Printable() escapes, but for line ends between values, is \uNNNN:
// the same JSON, fit for a terminal. Other text than valid UTF-8 becomes \ufffd.
std::string PrintableJson(std::string_view json);

// Printable text as one value among others: in double quotes, with '"' and '\' behind a '\'.
std::string Quoted(std::string_view text);

// A value of a KEY=VALUE line: as it is where it is of letters, digits and . _ @ : / + - alone,
// else quoted, so that no value can look like another key.
std::string LogValue(std::string_view text);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_UTF8_H_
