// The files of the simulated client machine: bytes in memory, with the times and the inode that a
// file system would show. The files beside them (X.h5.h5m/) are real, on a memory file system.
#ifndef H5MIRROR_TESTS_SIM_LOCAL_FILE_H_
#define H5MIRROR_TESTS_SIM_LOCAL_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client_vfd/session/file_reader.h"

namespace h5mirror::sim {

// The bytes of a file at one moment.
struct Image {
  std::string bytes;
  // Rises with each change of the file.
  uint64_t number = 0;
};
using ImagePtr = std::shared_ptr<const Image>;

class LocalFile {
 public:
  LocalFile(std::string path, std::string name, uint64_t inode)
      : path_(std::move(path)), name_(std::move(name)), inode_(inode) {}

  void Write(uint64_t offset, const std::string& bytes, int64_t time_ns);
  void Truncate(uint64_t size_bytes, int64_t time_ns);
  FileStat Stat() const;
  const std::string& bytes() const { return bytes_; }
  const std::string& path() const { return path_; }
  const std::string& name() const { return name_; }

  // The program says that the bytes are a whole HDF5 file now; the next change ends that.
  void MarkConsistent() { consistent_ = true; }
  // Null: the bytes are not consistent.
  ImagePtr Snapshot();

  // The open that has it locked; null: none.
  const void* locked_by = nullptr;
  // The two sides may end up different without a fault of the product: a program was killed while
  // it wrote.
  bool may_diverge = false;
  // The number of the newest image that a program was told is durable.
  uint64_t acked_number = 0;

 private:
  void Touch(int64_t time_ns);

  const std::string path_;
  const std::string name_;
  const uint64_t inode_;
  std::string bytes_;
  int64_t time_ns_ = 0;
  uint64_t number_ = 0;
  bool consistent_ = false;
  ImagePtr image_;
};

// The file as the session reads it.
class SimReader final : public vfd::FileReader {
 public:
  explicit SimReader(std::shared_ptr<const LocalFile> file) : file_(std::move(file)) {}
  absl::Status Read(Extent extent, char* out) const override;
  absl::StatusOr<FileStat> Stat() const override { return file_->Stat(); }
  std::vector<Extent> DataExtents() const override;

 private:
  const std::shared_ptr<const LocalFile> file_;
};

}  // namespace h5mirror::sim

#endif  // H5MIRROR_TESTS_SIM_LOCAL_FILE_H_
