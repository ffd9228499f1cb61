// Values of settings that several programs have.
#ifndef H5MIRROR_BASE_SETTING_VALUES_H_
#define H5MIRROR_BASE_SETTING_VALUES_H_

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace h5mirror {

// Permissions as chmod(1) has them: one to five octal digits, at most `max`.
// kInvalidArgument says the range and gives an example; the caller names the key.
absl::StatusOr<uint32_t> ParseOctal(std::string_view text, uint32_t max);

// kInvalidArgument: none of debug, info, warn and error.
absl::Status CheckLogLevel(std::string_view text);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_SETTING_VALUES_H_
