// The files that this process has open through the driver, by device, inode and host library.
//
// HDF5 may probe a file that it has open already: it opens the file again, then finds by cmp() that
// the two are one. Locks belong to open descriptions. So a probe must not ask for a lock: the first
// open's lock would refuse it.
#ifndef H5MIRROR_CLIENT_VFD_PLUGIN_MODES_OPEN_FILES_H_
#define H5MIRROR_CLIENT_VFD_PLUGIN_MODES_OPEN_FILES_H_

#include <sys/types.h>

#include <compare>
#include <utility>

namespace h5mirror::vfd {

struct HostLibrary;

struct FileKey {
  const HostLibrary* host = nullptr;
  dev_t device = 0;
  ino_t inode = 0;
  auto operator<=>(const FileKey&) const = default;
};

enum class Seen { kFirst, kAgain };

// Thread-safe. Each AddOpenFile is followed by one RemoveOpenFile.
Seen AddOpenFile(const FileKey& key);
void RemoveOpenFile(const FileKey& key);
bool IsOpenFile(const FileKey& key);

// Adds a file for as long as it lives, or until Remove().
class OpenMark {
 public:
  explicit OpenMark(const FileKey& key) : key_(key) { AddOpenFile(key_); }
  ~OpenMark() { Remove(); }
  OpenMark(const OpenMark&) = delete;
  OpenMark& operator=(const OpenMark&) = delete;

  void Remove() {
    if (std::exchange(is_added_, false)) RemoveOpenFile(key_);
  }

 private:
  const FileKey key_;
  bool is_added_ = true;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_PLUGIN_MODES_OPEN_FILES_H_
