// One version or cut of a file, open for reading in mode=reader.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_READER_H_
#define H5MIRROR_CLIENT_VFD_SESSION_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client_vfd/session/reader_server.h"
#include "client_vfd/session/snapshot_pins.h"
#include "h5mirror/v1/types.pb.h"
#include "rpc/block_cache.h"
#include "rpc/version_source.h"
#include "rpc/version_spec.h"

namespace h5mirror::vfd {

// Which cut of a live file is wanted.
struct LiveCut {
  int64_t cut = 0;                              // this one; 0: the newest,
  absl::Time not_after = absl::InfinitePast();  // of this server time or before; unset: of all
  std::optional<SnapshotPins::Id> root_id;      // for the root that led here; else for itself
};

struct ReaderConfig {
  ReaderServer server;
  std::string name;  // under the server's root
  std::optional<LiveCut> live;
  rpc::VersionSpec version;  // without `live`
  absl::Duration timeout = absl::Seconds(5);
  uint64_t cache_bytes = 64 << 20;
};

// Pinned: the same bytes from its opening on, whatever is written, tagged or rolled back meanwhile;
// a cut that is no version until the server no longer holds it (kOutOfRange "snapshot expired").
// A version or cut that was cut while a writer had the file open reads as one that was closed.
//
// Thread-compatible. Nothing is in flight between two calls but what is read ahead, which a fork
// ends, so it goes on in a forked child.
class Reader {
 public:
  // Finds the version. Errors: those of FindVersion and ReadVersion; kUnavailable and
  // kDeadlineExceeded name the server.
  static absl::StatusOr<std::unique_ptr<Reader>> Open(const ReaderConfig& config);

  // Number 0 where the cut that was opened is no version.
  const v1::Version& version() const { return version_; }
  // When it was opened, by the server's clock; of a cut only.
  absl::Time open_time() const { return open_time_; }
  // Null: a version, nobody need hold it.
  const SnapshotPins* pins() const { return pins_.get(); }
  // Equal for two readers of the same bytes, and for no others.
  const std::string& identity() const { return identity_; }

  // As VersionSource::Read(); errors name the file and the version.
  absl::Status Read(uint64_t offset, absl::Span<char> out, rpc::ReadKind kind);

 private:
  struct Found;
  static absl::StatusOr<Found> Find(const ReaderConfig& config);
  static absl::StatusOr<Found> FindLive(const ReaderConfig& config);
  static absl::StatusOr<Found> OpenLive(const ReaderConfig& config);
  Reader(const ReaderConfig& config, Found found, std::string identity, rpc::RangeReader ranges,
         rpc::StreamReader stream);

  // Looks where HDF5 does for the superblock, and notes what is to be put over it.
  absl::Status FindSuperblock();
  // Where an agent of this host has the metadata of what is open: looks it up there.
  void MapMetadata(const ReaderConfig& config, const std::string& file_id);
  absl::Status Describe(const absl::Status& status) const;

  const v1::Version version_;
  const absl::Time open_time_;
  const std::shared_ptr<SnapshotPins> pins_;
  const std::string name_;
  const std::string identity_;
  rpc::VersionSource source_;
  uint64_t patch_offset_ = 0;
  std::string patch_;  // empty: the superblock is right as it is
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_READER_H_
