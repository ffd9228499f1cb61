// A fuzzer's bytes as a file with a name, without a disk.
#ifndef H5MIRROR_TESTS_FUZZ_TEXT_FILE_H_
#define H5MIRROR_TESTS_FUZZ_TEXT_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "tests/fuzz/fuzz_input.h"

namespace h5mirror {

class TextFile {
 public:
  explicit TextFile(std::string_view text) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    FuzzCheck(fd_ >= 0 &&
              write(fd_, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  ~TextFile() { close(fd_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  const int fd_;
};

}  // namespace h5mirror

#endif  // H5MIRROR_TESTS_FUZZ_TEXT_FILE_H_
