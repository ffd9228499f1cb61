// A program that closes descriptors which it did not open, as with closefrom(3). gRPC's are among
// them, and their numbers are soon those of the program's own files. gRPC would write into these,
// or close them. So a mark is opened before gRPC opens its own: it has a lower number, and is
// closed with them.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_DESCRIPTOR_MARK_H_
#define H5MIRROR_CLIENT_VFD_SESSION_DESCRIPTOR_MARK_H_

#include <sys/types.h>

#include <atomic>

namespace h5mirror::vfd {

// The file behind a descriptor.
struct FileIdentity {
  dev_t device = 0;
  ino_t inode = 0;

  bool operator==(const FileIdentity& other) const = default;
};

// Whether `fd` is still the file that it was. `file`: as IdentityOf() gave it. Another descriptor
// of the same file counts as the same.
bool IsStill(int fd, const FileIdentity& file);
// Zeros if `fd` is not open.
FileIdentity IdentityOf(int fd);

// Thread-safe. A forked child has the mark of its parent.
class DescriptorMark {
 public:
  // Opens the mark, unless it was set before. Not by two threads at once. Where the system gives no
  // descriptor for it, the mark counts as there.
  void Set();
  // False: the program has closed it. The answer stays so. Costs one fstat(2).
  bool is_there() const;

 private:
  std::atomic<int> fd_{-1};
  FileIdentity file_;
  mutable std::atomic<bool> is_lost_{false};
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_DESCRIPTOR_MARK_H_
