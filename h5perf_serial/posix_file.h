// A file of the POSIX API, by one seek and one call for each run of bytes.
#ifndef H5MIRROR_H5PERF_SERIAL_POSIX_FILE_H_
#define H5MIRROR_H5PERF_SERIAL_POSIX_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace h5mirror::perf {

// Owns a descriptor. Errors name the call and the file; they are errno's codes, and kDataLoss where
// the file ends before its data does.
class PosixFile {
 public:
  // `flags` of open(2); see ok(). A file that is made is everybody's to read.
  PosixFile(const std::string& path, int flags);
  ~PosixFile();
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  bool ok() const { return fd_ >= 0; }
  // Of the call that just failed: "create FILE: ..." with what = "create".
  absl::Status Error(const char* what) const;

  // All of `data`, at `offset` bytes.
  absl::Status Write(uint64_t offset, const unsigned char* data, size_t size);
  absl::Status Read(uint64_t offset, unsigned char* data, size_t size);
  absl::Status Sync();
  absl::Status Close();

 private:
  absl::Status Seek(uint64_t offset);

  const std::string path_;
  int fd_;
};

}  // namespace h5mirror::perf

#endif  // H5MIRROR_H5PERF_SERIAL_POSIX_FILE_H_
