// An open file in CephFS. What its sync means: docs/design/048-ceph.md.
#ifndef H5MIRROR_CEPH_FILE_H_
#define H5MIRROR_CEPH_FILE_H_

#include <memory>
#include <string>

#include "base/env.h"
#include "ceph/mount.h"

namespace h5mirror::ceph {

FileStat ToFileStat(const CephStat& stx);

class CephFile final : public EnvFile {
 public:
  // Takes `handle`, of `inode`, whose number is `number`. `mount` must outlive this.
  CephFile(CephMount& mount, InodeRef inode, uint64_t number, Fh* handle, std::string path)
      : mount_(mount),
        inode_(std::move(inode)),
        handle_(handle),
        path_(std::move(path)),
        sync_need_(mount.sync_needs().Of(number)) {}
  ~CephFile() override;

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) override;
  absl::Status WriteAt(uint64_t offset, absl::Span<const std::string_view> pieces) override;
  absl::Status Truncate(uint64_t size_bytes) override;
  absl::Status Sync() override { return SyncAs(/*wants_times=*/false); }
  absl::Status SyncWithTimes() override { return SyncAs(/*wants_times=*/true); }
  bool GrowAhead(uint64_t size_bytes) override;
  absl::Status Zero(Extent extent) override;
  // Everything up to the end: CephFS tells no holes.
  absl::StatusOr<Extent> NextData(uint64_t offset) override;
  absl::StatusOr<uint64_t> Size() override;
  absl::StatusOr<FileStat> Stat() override;
  absl::StatusOr<uint32_t> Owner() override;
  absl::Status SetMode(uint32_t mode_bits, int64_t group) override;
  absl::StatusOr<FileAccess> Access() override;
  absl::Status SetAccess(const FileAccess& access, int64_t group) override;
  // Reads and writes: libcephfs has no copy on the server's side.
  absl::Status CopyFrom(EnvFile& from, Extent extent) override;

 private:
  absl::Status SyncAs(bool wants_times);
  absl::Status SyncOnce(bool is_whole);
  absl::StatusOr<CephStat> Attributes(unsigned want);
  absl::Status Set(CephStat stx, int mask, std::string_view what);
  absl::Status SetGroup(int64_t group);
  absl::Status RemoveAccessList();

  CephMount& mount_;
  const InodeRef inode_;
  Fh* const handle_;
  const std::string path_;
  const std::shared_ptr<SyncNeed> sync_need_;
};

}  // namespace h5mirror::ceph

#endif  // H5MIRROR_CEPH_FILE_H_
