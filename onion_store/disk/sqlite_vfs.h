// SQLite's file system: an EnvTree. So in tests the index meets the same faults and crashes as the
// rest of the store, and it never leaves the root.
#ifndef H5MIRROR_ONION_STORE_DISK_SQLITE_VFS_H_
#define H5MIRROR_ONION_STORE_DISK_SQLITE_VFS_H_

#include <memory>
#include <string>

#include <sqlite3.h>

#include "base/env.h"

namespace h5mirror::store {

// Registers itself under a name of its own. Takes no locks: the store's lock on the root keeps
// other processes away, and an index has one connection. Thread-safe. Must outlive its connections.
class SqliteVfs {
 public:
  // `tree` must outlive this.
  explicit SqliteVfs(EnvTree& tree);
  SqliteVfs(const SqliteVfs&) = delete;
  ~SqliteVfs();

  const char* name() const { return name_.c_str(); }

 private:
  std::string name_;
  std::unique_ptr<sqlite3_vfs> vfs_;
};

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_DISK_SQLITE_VFS_H_
