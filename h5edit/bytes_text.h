// Bytes as h5dump writes those of opaque types and of bitfields.
#ifndef H5MIRROR_H5EDIT_BYTES_TEXT_H_
#define H5MIRROR_H5EDIT_BYTES_TEXT_H_

#include <string>
#include <string_view>

namespace h5mirror::edit {

// "01:02:ff" or "0x0102ff": the bytes in this order. False: it is neither.
bool ParseBytes(std::string_view text, std::string* bytes);
// "01:02:ff", and of a single byte "0xff".
std::string BytesText(std::string_view bytes);

// `text` between two of `quote`. The quote and '\\' get a '\\' before them, and bytes that cannot
// be printed become what `escape` makes of each.
std::string QuotedWith(char quote, std::string_view text,
                       std::string (*escape)(unsigned char byte));

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_BYTES_TEXT_H_
