// Which names a file can be given, of those that it can have (CheckName() in store.h).
#ifndef H5MIRROR_ONION_STORE_SHARED_NEW_NAME_H_
#define H5MIRROR_ONION_STORE_SHARED_NEW_NAME_H_

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace h5mirror::store {

// Of any name.
inline constexpr size_t kNameBytesMax = 4096;
// Levels of a new name: its components, the file's own one counted.
inline constexpr int kNameLevelsMax = 128;

// Whether `name` may be given to a file: CheckName(), and at most kNameLevelsMax levels. A file
// that got a deeper one from an older program is listed, served and kept as all others are.
absl::Status CheckNewName(std::string_view name);

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_SHARED_NEW_NAME_H_
