// The names below one directory of a mounted CephFS.
#ifndef H5MIRROR_CEPH_TREE_H_
#define H5MIRROR_CEPH_TREE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/machine.h"
#include "base/names_in_order.h"
#include "ceph/mount.h"

namespace h5mirror::ceph {

class CephTree final : public EnvTree,
                       public KnowsFileSizes,
                       public KnowsNameOrder,
                       public IsRemote {
 public:
  // The tree below `directory`, absolute within the mount, "/" for all of it. `shown` is its name
  // in messages. `mount` must outlive the tree.
  // kNotFound; kInvalidArgument: it is no directory.
  static absl::StatusOr<std::unique_ptr<EnvTree>> Open(CephMount& mount, std::string directory,
                                                       std::string shown,
                                                       const FileSizeMax& file_sizes);

  absl::StatusOr<std::unique_ptr<EnvFile>> Open(std::string_view name, OpenKind kind,
                                                uint32_t mode_bits) override;
  absl::Status MakeDirectory(std::string_view name, uint32_t mode_bits) override;
  absl::Status Rename(std::string_view from, std::string_view to) override;
  absl::Status Link(std::string_view from, std::string_view to) override;
  absl::Status Remove(std::string_view name) override;
  absl::Status RemoveDirectory(std::string_view name) override;
  absl::Status SyncDirectory(std::string_view name) override;
  // By threads of their own: a sync waits for others, and needs no core.
  absl::Status SyncAll(absl::Span<const FileSync> files) override;
  absl::StatusOr<std::vector<DirectoryEntry>> List(std::string_view name) override;
  absl::StatusOr<FileStat> Stat(std::string_view name) override;
  absl::StatusOr<std::unique_ptr<EnvLock>> Lock(std::string_view name, LockKind kind) override;
  // kUnavailable: the monitors do not know, as where no ceph-mgr runs.
  absl::StatusOr<uint64_t> FreeBytes() override;
  absl::StatusOr<uint64_t> TotalBytes() override;
  FileSizeMax FileSizes() override { return file_sizes_; }
  // An MDS has one journal. Where the directories of a rename belong to two MDSs, the one that the
  // file leaves has its part in its journal before the other one may go on.
  bool KeepsNamesInOrder() override { return true; }

 private:
  struct Found {
    InodeRef inode;
    CephStat stx;
  };
  struct Parent {
    Found directory;
    std::string last;  // component
  };

  CephTree(CephMount& mount, std::string directory, std::string shown,
           const FileSizeMax& file_sizes)
      : mount_(mount),
        directory_(std::move(directory)),
        shown_(std::move(shown)),
        file_sizes_(file_sizes) {}

  // For messages.
  std::string Path(std::string_view name) const;
  // Component by component from the mount's root, over no symbolic link.
  absl::StatusOr<Found> Find(std::string_view name);
  absl::StatusOr<Found> FindDirectory(std::string_view name);
  absl::StatusOr<Parent> FindParent(std::string_view name);
  absl::Status Descend(std::string_view part, std::string_view name, Found* at);
  absl::StatusOr<std::unique_ptr<EnvFile>> OpenThere(std::string_view name, OpenKind kind);
  absl::StatusOr<std::unique_ptr<EnvFile>> MakeFile(std::string_view name, uint32_t mode_bits);
  absl::Status SyncInode(const InodeRef& directory, std::string_view name);
  absl::StatusOr<struct statvfs> Space();

  CephMount& mount_;
  const std::string directory_;
  const std::string shown_;
  const FileSizeMax file_sizes_;
};

}  // namespace h5mirror::ceph

#endif  // H5MIRROR_CEPH_TREE_H_
