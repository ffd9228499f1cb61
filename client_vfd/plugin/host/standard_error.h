// Whether descriptor 2 is the program's standard error. A program that has closed it gives its
// number to the next file, or socket, that it opens. Lines for people would be written into that.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_HOST_STANDARD_ERROR_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_HOST_STANDARD_ERROR_H_

#include <sys/types.h>

#include <optional>
#include <utility>

namespace h5mirror::vfd {

// Const after its construction, and so thread-safe.
class StandardError {
 public:
  // Looks at descriptor 2. One that is closed at an exec(2) is no standard error: the streams that
  // a program is started with are not, and Python's files are.
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
