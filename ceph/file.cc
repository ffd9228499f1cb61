#include "ceph/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>

#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "base/errno_status.h"
#include "base/status_macros.h"
#include "base/strings.h"

namespace h5mirror::ceph {
namespace {

// libcephfs counts the bytes of a call in an int.
constexpr size_t kCallBytesMax = size_t{1} << 30;
// Of a copy; a list of access rights is far smaller (Linux: 64 KiB).
constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kListBytesMax = size_t{1} << 16;

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileStat ToFileStat(const CephStat& stx) {
  return {.inode = stx.stx_ino,
          .size_bytes = static_cast<int64_t>(stx.stx_size),
          .mtime_ns = Nanoseconds(stx.stx_mtime),
          .ctime_ns = Nanoseconds(stx.stx_ctime)};
}

CephFile::~CephFile() {
  if (!mount_.fence().is_tripped()) ceph_ll_close(mount_.get(), handle_);
}

absl::StatusOr<size_t> CephFile::ReadAt(uint64_t offset, absl::Span<char> out) {
  size_t done = 0;
  while (done < out.size()) {
    H5M_RETURN_IF_ERROR(mount_.Gate());
    const size_t wanted = std::min(out.size() - done, kCallBytesMax);
    const int got = ceph_ll_read(mount_.get(), handle_, static_cast<int64_t>(offset + done), wanted,
                                 out.data() + done);
    if (got == -EINTR) continue;
    H5M_RETURN_IF_ERROR(mount_.Check(got, "read", path_));
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

absl::Status CephFile::WriteAt(uint64_t offset, absl::Span<const std::string_view> pieces) {
  uint64_t end = offset;
  for (std::string_view piece : pieces) end += piece.size();
  const absl::Cleanup note = [this, end] { sync_need_->NoteWrite(end); };
  for (std::string_view piece : pieces) {
    while (!piece.empty()) {
      H5M_RETURN_IF_ERROR(mount_.Gate());
      const int wrote = ceph_ll_write(mount_.get(), handle_, static_cast<int64_t>(offset),
                                      std::min(piece.size(), kCallBytesMax), piece.data());
      if (wrote == -EINTR) continue;
      H5M_RETURN_IF_ERROR(mount_.Check(wrote == 0 ? -EIO : wrote, "write", path_));
      offset += static_cast<uint64_t>(wrote);
      piece.remove_prefix(static_cast<size_t>(wrote));
    }
  }
  return absl::OkStatus();
}

absl::Status CephFile::Truncate(uint64_t size_bytes) {
  CephStat stx{};
  stx.stx_size = size_bytes;
  const absl::Status set = Set(stx, CEPH_SETATTR_SIZE, "truncate");
  sync_need_->NoteTruncate(size_bytes);
  return set;
}

bool CephFile::GrowAhead(uint64_t size_bytes) {
  const auto size = Size();
  return size.ok() && *size < size_bytes && Truncate(size_bytes).ok();
}

absl::Status CephFile::SyncAs(bool wants_times) {
  H5M_RETURN_IF_ERROR(mount_.Gate());
  const SyncNeed::Sync need = sync_need_->BeginSync(wants_times);
  // Before the sync, which covers it. While the session lives, no call asks the MDS for it.
  const absl::StatusOr<uint64_t> size = need.is_whole ? Size() : 0;
  // No retry after an error, which may be the first sign of a fencing.
  absl::Status synced = size.ok() ? SyncOnce(need.is_whole) : size.status();
  if (!synced.ok()) synced = absl::InternalError(synced.message());
  if (need.is_whole) sync_need_->EndWhole(need, synced.ok(), size.value_or(0));
  return synced;
}

absl::Status CephFile::SyncOnce(bool is_whole) {
  const int result = ceph_ll_fsync(mount_.get(), handle_, /*syncdataonly=*/is_whole ? 0 : 1);
  H5M_RETURN_IF_ERROR(mount_.Check(result, "fsync", path_));
  return mount_.Guard(inode_.get(), path_);
}

absl::Status CephFile::Zero(Extent extent) {
  H5M_ASSIGN_OR_RETURN(const uint64_t size, Size());
  // Beyond the end each object would be asked for.
  const uint64_t end = std::min(extent.end(), size);
  if (extent.offset >= end) return absl::OkStatus();
  H5M_RETURN_IF_ERROR(mount_.Gate());
  const int punched = ceph_ll_fallocate(
      mount_.get(), handle_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
      static_cast<int64_t>(extent.offset), static_cast<int64_t>(end - extent.offset));
  return mount_.Check(punched, "punch a hole in", path_);
}

absl::StatusOr<Extent> CephFile::NextData(uint64_t offset) {
  H5M_ASSIGN_OR_RETURN(const uint64_t size, Size());
  return Extent{offset, size > offset ? size - offset : 0};
}

absl::StatusOr<uint64_t> CephFile::Size() {
  H5M_ASSIGN_OR_RETURN(const CephStat stx, Attributes(CEPH_STATX_SIZE));
  return stx.stx_size;
}

absl::StatusOr<FileStat> CephFile::Stat() {
  H5M_ASSIGN_OR_RETURN(const CephStat stx, Attributes(CEPH_STATX_BASIC_STATS));
  return ToFileStat(stx);
}

absl::StatusOr<uint32_t> CephFile::Owner() {
  H5M_ASSIGN_OR_RETURN(const CephStat stx, Attributes(CEPH_STATX_UID));
  return stx.stx_uid;
}

absl::Status CephFile::SetMode(uint32_t mode_bits, int64_t group) {
  H5M_RETURN_IF_ERROR(SetGroup(group));
  CephStat stx{};
  stx.stx_mode = static_cast<uint16_t>(mode_bits & 0777);
  return Set(stx, CEPH_SETATTR_MODE, "set the mode of");
}

absl::StatusOr<FileAccess> CephFile::Access() {
  H5M_RETURN_IF_ERROR(mount_.Gate());
  std::string bytes(kListBytesMax, '\0');
  const int got = ceph_ll_getxattr(mount_.get(), inode_.get(), kAccessListName, bytes.data(),
                                   bytes.size(), mount_.perms());
  if (got > 0) {
    bytes.resize(static_cast<size_t>(got));
    return DecodeAccessList(bytes);
  }
  if (got < 0 && got != -ENODATA && got != -EOPNOTSUPP) {
    return mount_.Check(got, "read the access list of", path_);
  }
  H5M_ASSIGN_OR_RETURN(const CephStat stx, Attributes(CEPH_STATX_MODE));
  return FileAccess{static_cast<uint32_t>(stx.stx_mode & 0777), {}};
}

absl::Status CephFile::SetAccess(const FileAccess& access, int64_t group) {
  if (access.named.empty()) {
    H5M_RETURN_IF_ERROR(RemoveAccessList());
    return SetMode(access.mode_bits, group);
  }
  H5M_RETURN_IF_ERROR(SetGroup(group));
  H5M_RETURN_IF_ERROR(mount_.Gate());
  const std::string bytes = EncodeAccessList(access);
  const absl::Cleanup note = [this] { sync_need_->NoteChange(); };
  const int set = ceph_ll_setxattr(mount_.get(), inode_.get(), kAccessListName, bytes.data(),
                                   bytes.size(), 0, mount_.perms());
  const absl::Status status = mount_.Check(set, "set the access list of", path_);
  const bool cannot = set == -EOPNOTSUPP || set == -EPERM || set == -EACCES || set == -EINVAL;
  return cannot ? absl::UnimplementedError(status.message()) : status;
}

absl::Status CephFile::CopyFrom(EnvFile& from, Extent extent) {
  std::string buffer(std::min<uint64_t>(kBufferBytes, extent.length), '\0');
  for (uint64_t at = extent.offset; at < extent.end();) {
    const uint64_t wanted = std::min<uint64_t>(buffer.size(), extent.end() - at);
    H5M_ASSIGN_OR_RETURN(const size_t got, from.ReadAt(at, {buffer.data(), wanted}));
    if (got == 0) break;  // The source ends here.
    const std::string_view piece(buffer.data(), got);
    H5M_RETURN_IF_ERROR(WriteAt(at, {&piece, 1}));
    at += got;
  }
  return absl::OkStatus();
}

absl::StatusOr<CephStat> CephFile::Attributes(unsigned want) {
  H5M_RETURN_IF_ERROR(mount_.Gate());
  CephStat stx{};
  H5M_RETURN_IF_ERROR(mount_.Check(
      ceph_ll_getattr(mount_.get(), inode_.get(), &stx, want, 0, mount_.perms()), "stat", path_));
  return stx;
}

absl::Status CephFile::Set(CephStat stx, int mask, std::string_view what) {
  H5M_RETURN_IF_ERROR(mount_.Gate());
  const absl::Cleanup note = [this] { sync_need_->NoteChange(); };
  return mount_.Check(ceph_ll_setattr(mount_.get(), inode_.get(), &stx, mask, mount_.perms()), what,
                      path_);
}

absl::Status CephFile::SetGroup(int64_t group) {
  if (group < 0) return absl::OkStatus();
  H5M_ASSIGN_OR_RETURN(CephStat stx, Attributes(CEPH_STATX_GID));
  if (stx.stx_gid == static_cast<uint32_t>(group)) return absl::OkStatus();
  stx.stx_gid = static_cast<uint32_t>(group);
  return Set(stx, CEPH_SETATTR_GID, "set the group of");
}

absl::Status CephFile::RemoveAccessList() {
  H5M_RETURN_IF_ERROR(mount_.Gate());
  const absl::Cleanup note = [this] { sync_need_->NoteChange(); };
  const int removed =
      ceph_ll_removexattr(mount_.get(), inode_.get(), kAccessListName, mount_.perms());
  if (removed == -ENODATA || removed == -EOPNOTSUPP) return absl::OkStatus();
  return mount_.Check(removed, "remove the access list of", path_);
}

}  // namespace h5mirror::ceph
