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
#include "client_vfd/session/open_groups.h"
#include "client_vfd/session/reader_server.h"
#include "client_vfd/session/snapshot_pins.h"
#include "h5mirror/v1/types.pb.h"
#include "rpc/block_cache.h"
#include "rpc/cut_map.h"
#include "rpc/cut_map_format.h"
#include "rpc/version_source.h"
#include "rpc/version_spec.h"

namespace h5mirror::vfd {

// The cut of a live file to open.
struct LiveCut {
  int64_t cut = 0;                              // this one; 0: the newest
  absl::Time not_after = absl::InfinitePast();  // with 0: at or before this server time; past: any
  std::optional<SnapshotPins::Id> root_id;      // the root that led here; unset: the file itself
};

struct ReaderConfig {
  ReaderServer server;
  std::string name;  // under the server's root
  std::optional<LiveCut> live;
  rpc::VersionSpec version;  // without `live`
  absl::Duration timeout = absl::Seconds(5);
  uint64_t cache_bytes = 64 << 20;
};

// Reads the same bytes from its open on, also beside writes, tags and rollbacks. A
// cut that is no version can be read until its pin expires (kOutOfRange, "snapshot expired"). If a
// writer had the file open at the cut, the bytes read as those of a closed file.
//
// Thread-compatible. Works in a forked child too: between two calls only read-ahead is in flight,
// and a fork ends that.
class Reader {
 public:
  // Finds the version. Errors: those of FindVersion and ReadVersion; kUnavailable and
  // kDeadlineExceeded name the server.
  static absl::StatusOr<std::unique_ptr<Reader>> Open(const ReaderConfig& config);

  // The version; number 0: a cut that is no version.
  const v1::Version& version() const { return version_; }
  // When the cut was opened, by the server's clock. Unset for a version.
  absl::Time open_time() const { return open_time_; }
  // The pins of the root; null: a version that was asked for needs none.
  const SnapshotPins* pins() const { return pins_.get(); }
  // Equal for two readers of the same bytes, and for no others.
  const std::string& identity() const { return identity_; }
  // The id of the writer's session that made the cut; empty: not known.
  const std::string& writer_session_id() const { return writer_session_id_; }
  // Whether an SWMR writer had the file open.
  bool is_swmr() const { return is_swmr_; }

  // As VersionSource::Read(); errors name the file and the version.
  absl::Status Read(uint64_t offset, absl::Span<char> out, rpc::ReadKind kind);

 private:
  struct Found;
  // The maps of an agent's memory. kTold: the open has brought them all. kNone: no agent gives a
  // valid answer.
  enum class Maps { kAsk, kTold, kNone };
  static absl::StatusOr<Found> Find(const ReaderConfig& config);
  // The cut that all members of a family, split or multi file have, where it is one of them.
  static absl::StatusOr<Found> FindOfMembers(const ReaderConfig& config, Found found);
  static Found KeepOpen(Found from, Found to);
  static absl::StatusOr<Found> FindLive(const ReaderConfig& config);
  // Finds the newest cut by one question to an agent of this host. False: no answer, use the other
  // calls.
  static bool FindAtAgent(const ReaderConfig& config, Found* found);
  static absl::StatusOr<Found> OpenLive(const ReaderConfig& config);
  Reader(const ReaderConfig& config, Found found, std::string identity, rpc::RangeReader ranges,
         rpc::StreamReader stream);

  // Finds the superblock where HDF5 looks for it, and makes the patch that closes it.
  absl::Status FindSuperblock();
  // Maps the metadata of the open version, if an agent of this host has it. Its raw data is looked
  // for when some is read.
  void ShareWithHost(const ReaderConfig& config, const std::string& file_id, Maps maps,
                     std::shared_ptr<AgentPass> passes_agent);
  void UseMap(std::shared_ptr<const rpc::CutMap> map);
  // False: no agent gives a valid answer there.
  bool MapMetadata(const std::string& agent, const rpc::CutMapQuestion& question);
  void ShareBlocks(std::string agent, rpc::CutMapQuestion question,
                   std::shared_ptr<AgentPass> passes_agent);
  absl::Status Describe(const absl::Status& status) const;

  const v1::Version version_;
  const absl::Time open_time_;
  const std::shared_ptr<SnapshotPins> pins_;
  const std::shared_ptr<const OpenGroup> group_;  // of a first member
  const std::string name_;
  const std::string identity_;
  const std::string writer_session_id_;
  rpc::VersionSource source_;
  bool has_all_metadata_ = false;  // mapped
  bool is_swmr_ = false;
  uint64_t patch_offset_ = 0;
  std::string patch_;  // the closed superblock's bytes; empty: it needs no patch
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_READER_H_
