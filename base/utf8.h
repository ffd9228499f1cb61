// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing beyond U+10FFFF.
#ifndef H5MIRROR_BASE_UTF8_H_
#define H5MIRROR_BASE_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace h5mirror {

// The length in bytes, 1 to 4, of the first character of `text`, which must not be empty; 0: it is
// not UTF-8.
size_t CharacterBytes(std::string_view text);

// Whether all of `text` is UTF-8. An empty text is.
bool IsUtf8(std::string_view text);

// The start of the character to which the byte at `at` belongs.
size_t CharacterStart(std::string_view text, size_t at);

// As CharacterBytes(), if that character can be printed as it is; 0: it must be escaped, as
// Printable() does.
size_t PrintableBytes(std::string_view text);

// Text from elsewhere (names, comments, users, messages) on one line, safe to print. These become
// \xNN for each byte, as $'...' of bash takes them: control characters, which could drive a
// terminal or begin another line; characters that are invisible or turn the order of others round
// (Unicode's Cf, Zl and Zp: U+200B, U+202E, U+2028, tags, ...); broken UTF-8. Applied to its own
// result, it changes nothing.
std::string Printable(std::string_view text);

// The same JSON, safe for a terminal: all that Printable() escapes becomes \uNNNN, but for line
// ends between values. Broken UTF-8 becomes \ufffd.
std::string PrintableJson(std::string_view json);

// Printable text as one value among others: in double quotes, with '"' and '\' behind a '\'.
std::string Quoted(std::string_view text);

// A value of a KEY=VALUE line. As it is, if it has only letters, digits and . _ @ : / + -; else
// quoted, so that no value can look like another key.
std::string LogValue(std::string_view text);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_UTF8_H_
