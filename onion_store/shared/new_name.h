// The names that a file can be given. They are stricter than those that it can have (CheckName() in
// store.h).
#ifndef H5MIRROR_ONION_STORE_SHARED_NEW_NAME_H_
#define H5MIRROR_ONION_STORE_SHARED_NEW_NAME_H_

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace h5mirror::store {

// The longest name, in bytes.
inline constexpr size_t kNameBytesMax = 4096;
// The most components of a new name, the file's own one included.
inline constexpr int kNameLevelsMax = 128;

// OK: `name` may be given to a file. CheckName() takes it, and it has at most kNameLevelsMax
// components. A deeper name that an older program gave is listed and served as all others are.
absl::Status CheckNewName(std::string_view name);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_NEW_NAME_H_
