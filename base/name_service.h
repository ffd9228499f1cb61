// Entries of the host's name service, by the functions of getpwuid_r(3) and getgrgid_r(3).
#ifndef H5MIRROR_BASE_NAME_SERVICE_H_
#define H5MIRROR_BASE_NAME_SERVICE_H_

#include <errno.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace h5mirror {

// The buffer of the largest entry: a group of a hundred thousand members.
inline constexpr size_t kNameServiceBytesMax = 4 << 20;

// kUnavailable, "the name service failed for WHAT: ..."; `error` as in errno.
absl::Status NameServiceFailed(std::string_view what, int error);

// Calls `get(&record, buffer, size, &found)` with a buffer that is large enough, and waits for the
// name service. `found` stays null if there is no such entry; else it points into `buffer` and
// `record`. Errors: NameServiceFailed().
template <typename Record, typename Get>
absl::Status FetchFromNameService(std::string_view what, std::vector<char>& buffer, Record& record,
                                  Record*& found, const Get& get) {
  for (buffer.resize(4 << 10);; buffer.resize(2 * buffer.size())) {
    const int error = get(&record, buffer.data(), buffer.size(), &found);
    if (error == 0) return absl::OkStatus();
    if (error == EINTR) continue;
    // The libraries' errors for a missing entry (getpwuid(3)).
    if (error == ENOENT || error == ESRCH) return absl::OkStatus();
    if (error != ERANGE || buffer.size() >= kNameServiceBytesMax) {
      return NameServiceFailed(what, error);
    }
  }
}

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_NAME_SERVICE_H_
