// Reads the bytes of a cut, or of the version that it is. For the .cc files of SnapshotsService.
#ifndef H5MIRROR_SERVER_LIVE_CUT_SOURCE_H_
#define H5MIRROR_SERVER_LIVE_CUT_SOURCE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "server/live/snapshots_service.h"
#include "server/state/convert.h"

namespace h5mirror::server {

class SnapshotsService::Source final : public FileBytes {
 public:
  explicit Source(SnapshotTable::Pinned held)
      : snapshot_(std::move(held.snapshot)), file_id_(held.file_id) {
    Describe(snapshot_->info(), snapshot_->info().time, held.file_id);
    SetWriter(snapshot_->info(), proto_);
    proto_.set_of_group(snapshot_->info().of_group);
  }
  Source(std::unique_ptr<store::VersionReader> version, const store::FileId& file_id)
      : version_(std::move(version)), file_id_(file_id) {
    Describe(version_->info(), version_->info().server_time, file_id);
    proto_.set_of_group(version_->info().group.has_value());
  }

  v1::Snapshot& proto() { return proto_; }
  uint64_t size_bytes() const { return size_bytes_; }
  absl::StatusOr<Extent> NextData(uint64_t offset) {
    return snapshot_ != nullptr ? snapshot_->NextData(offset) : version_->NextData(offset);
  }
  absl::Status Read(uint64_t offset, absl::Span<char> out) {
    return snapshot_ != nullptr ? snapshot_->Read(offset, out) : version_->Read(offset, out);
  }
  void StartReading(Extent extent) {
    snapshot_ != nullptr ? snapshot_->StartReading(extent) : version_->StartReading(extent);
  }
  bool is_pinned() const { return snapshot_ != nullptr; }
  FileBytesInfo bytes_info() const override {
    FileBytesInfo info{.file_id = file_id_, .size_bytes = size_bytes_};
    info.cut = proto_.cut();
    info.version = proto_.version();
    info.time = FromProto(proto_.server_time());
    return info;
  }
  absl::Status ReadBytes(uint64_t offset, absl::Span<char> out) override {
    return Read(offset, out);
  }
  absl::Status ReadRanges(absl::Span<const Extent> ranges, absl::Span<char> out) {
    return snapshot_ != nullptr ? snapshot_->ReadRanges(ranges, out)
                                : version_->ReadRanges(ranges, out);
  }

 private:
  // `info` is a CutInfo or a VersionInfo.
  template <typename Info>
  void Describe(const Info& info, absl::Time time, const store::FileId& file_id) {
    size_bytes_ = info.size_bytes;
    proto_.set_file_id(file_id.data(), file_id.size());
    proto_.set_cut(info.cut);
    proto_.set_size_bytes(static_cast<int64_t>(info.size_bytes));
    *proto_.mutable_server_time() = ToProto(time);
    proto_.set_version(info.version);
    proto_.set_generation(info.generation);
  }

  const SnapshotTable::SnapshotPtr snapshot_;
  const std::unique_ptr<store::VersionReader> version_;
  const store::FileId file_id_;
  v1::Snapshot proto_;
  uint64_t size_bytes_ = 0;
};

}  // namespace h5mirror::server

#endif  // H5MIRROR_SERVER_LIVE_CUT_SOURCE_H_
