// Tells whether descriptor 2 is the program's standard error. If a program closes it, the next file
// or socket gets the number 2, and lines for people would be written there.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_STANDARD_ERROR_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_STANDARD_ERROR_H_

#include <sys/types.h>

#include <optional>
#include <utility>

namespace h5mirror::vfd {

// Const after its construction, and so thread-safe.
class StandardError {
 public:
  // Looks at descriptor 2. A descriptor with close-on-exec is no standard error: Python's files
  // have that flag, the streams that a program is started with do not.
  StandardError();

  // Whether descriptor 2 still is the file of that look. Nothing tells a new standard error from
  // data that got the number, as both come by dup2(2) or open(2). So no other file counts.
  bool IsThere() const;

 private:
  using File = std::pair<dev_t, ino_t>;

  const std::optional<File> file_;
};

// The look of this process's first open, or first line. After a fork it is the parent's.
const StandardError& FirstStandardError();

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_HOST_STANDARD_ERROR_H_
