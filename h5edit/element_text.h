// Values as h5dump writes them.
#ifndef H5MIRROR_H5EDIT_ELEMENT_TEXT_H_
#define H5MIRROR_H5EDIT_ELEMENT_TEXT_H_

#include <hdf5.h>

#include <string>
#include <string_view>

namespace h5mirror::edit {

// In quotes, with escapes that a script takes.
std::string QuotedText(std::string_view text);

// One element, in memory as the type `type` of the file. `object` is any of the file, where
// references lead to.
std::string ElementText(hid_t object, hid_t type, const char* bytes);

}  // namespace h5mirror::edit

#endif  // H5MIRROR_H5EDIT_ELEMENT_TEXT_H_
