// The values that go in and out of the store. The wire has types of its own, because disk, wire and
// memory change separately (server/state/convert.h translates).
#ifndef H5MIRROR_ONION_STORE_TYPES_H_
#define H5MIRROR_ONION_STORE_TYPES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/extent.h"

namespace h5mirror::store {

using FileId = std::array<uint8_t, 16>;
using SessionId = std::array<uint8_t, 16>;

// A cut's number: increases per file, with gaps, never given twice. 0: no cut.
using CutNumber = int64_t;
// A version's number: 1, 2, 3, ... per file, never given twice. 0: none.
using VersionNumber = int64_t;
// A lease's fencing number: larger at every grant, also across restarts. 0: none.
using Token = uint64_t;

// The kind of a barrier; see proto/h5mirror/v1/types.proto.
enum class BarrierKind : uint8_t { kTick = 1, kSync = 2, kCommit = 3 };

// Names one barrier of one session, for ever. seq 0: none.
struct BarrierId {
  SessionId session_id{};
  uint64_t seq = 0;
  bool operator==(const BarrierId&) const = default;
};

// The machine and real path from which a file is written.
struct Origin {
  std::string machine_id;
  std::string host;
  std::string path;
  bool operator==(const Origin&) const = default;
};

// The local file at its last clean close; all zero when unknown.
struct LocalStat {
  uint64_t inode = 0;
  int64_t size_bytes = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  bool operator==(const LocalStat&) const = default;
};

// The rights to the local file, and its writer.
struct LocalAccess {
  uint32_t mode_bits = 0;  // 0..0777; 0: unknown
  // The uid, on this host, of the verified user who may read the file; nullopt: unknown.
  std::optional<uint32_t> reader = std::nullopt;
  // The verified caller, "unix:anna": the owner of the file, if this session makes it. Empty:
  // unknown, or a name that CheckOwner() refuses.
  std::string owner = {};
};

// The origin of a version: user, host, program. `verified_user` is empty if the server asked for no
// token.
struct Provenance {
  std::string claimed_user;
  std::string verified_user;
  std::string host;
  std::string program;
  uint32_t pid = 0;
  std::string comment;
  absl::Time client_time = absl::InfinitePast();  // InfinitePast: unknown
  bool operator==(const Provenance&) const = default;
};

// How a version got its bytes from another file of the store.
enum class SourceKind : uint8_t {
  kFork = 1,       // the file begins with this version: Store::Fork()
  kPromotion = 2,  // File::Promote()
};

// For a version that has its bytes from another file: that file and its version.
struct SourceVersion {
  SourceKind kind = SourceKind::kFork;
  FileId file_id{};  // of the other file
  std::string name;  // its name then
  VersionNumber version = 0;
  CutNumber cut = 0;
  absl::Time time;  // when it was taken over, by the server's clock
  std::string claimed_user;
  std::string verified_user;  // as in Provenance
  bool operator==(const SourceVersion&) const = default;
};

// A cut of all members of a family, split or multi file, as one member knows it; see GroupCut in
// proto/h5mirror/v1/types.proto.
struct GroupCut {
  std::array<uint8_t, 16> id{};  // of one open of the file
  uint64_t number = 0;           // 1, 2, 3, ... of that open
  uint64_t whole_number = 0;     // the newest cut of that open that was whole by then; 0: none
  // In the first member: all members, itself first; in other members: the first member.
  std::vector<std::string> members;
  bool IsOfSameCut(const GroupCut& other) const { return id == other.id && number == other.number; }
  bool operator==(const GroupCut&) const = default;
};

struct VersionInfo {
  VersionNumber version = 0;
  CutNumber cut = 0;
  absl::Time server_time;
  Provenance provenance;
  uint64_t size_bytes = 0;
  uint64_t changed_pages = 0;  // 0 until the head holds the version
  uint64_t changed_bytes = 0;
  int64_t generation = 0;
  std::vector<std::string> tags;  // in byte order
  // Of a fork or a promotion; lists of versions leave it out.
  std::optional<SourceVersion> source = std::nullopt;
  // Of a member of a family, split or multi file. Lists of versions leave its `members` out.
  std::optional<GroupCut> group = std::nullopt;
};

// A cut that readers can pin.
struct CutInfo {
  CutNumber cut = 0;
  uint64_t size_bytes = 0;
  int64_t generation = 0;
  // When the cut was made, by the server's clock; of a recovered cut, when the newest version was
  // made.
  absl::Time time;
  VersionNumber version = 0;   // with the same bytes, when the cut was pinned; 0: none
  uint64_t written_bytes = 0;  // by all cuts from the open of the file in the store to this one
  SessionId writer{};          // the session whose cut it is; all zero: not known
  bool of_group = false;       // it, or the newest version, has a GroupCut
};

// The place of pages of a version.
enum class PagePlace : uint8_t {
  kHole,    // nowhere: a hole of the head
  kHead,    // in the head of the version's generation
  kStage,   // wholly or partly in the stage
  kPages,   // in a segment of pre-images
  kZeros,   // nowhere: saved as zeros
  kLost,    // lost, see PageRun::kLost
  kPacked,  // in a compressed record of a segment
};

// Whether a place in the head comes with the checksums of its pages.
enum class PageSums : uint8_t { kLeaveOut, kGive };

// Consecutive pages.
struct PlacedRun {
  uint64_t page = 0;
  uint64_t page_count = 0;
  PagePlace place = PagePlace::kHole;
  std::string file;     // with kHead, kPages and kPacked: relative to the root
  uint64_t offset = 0;  // of the first page in it; with kPacked: of the record
  // With kHead and PageSums::kGive: of each page, with zeros beyond the end of the head.
  std::vector<uint32_t> page_crc32c = {};

  uint64_t page_end() const { return page + page_count; }
  // Drops the pages at or beyond `end`, which is beyond `page`.
  void TruncateTo(uint64_t end) {
    page_count = std::min(page_count, end - page);
    if (page_crc32c.size() > page_count) page_crc32c.resize(page_count);
  }
  // Grows by `next`, if that follows in the file and on the disk. False: it does not follow.
  bool TakeIn(const PlacedRun& next, uint32_t page_size_bytes) {
    const uint64_t behind = place == PagePlace::kPacked ? 0 : page_count * page_size_bytes;
    const bool follows = next.page == page_end() && next.place == place && next.file == file &&
                         (file.empty() || next.offset == offset + behind);
    if (!follows) return false;
    page_count += next.page_count;
    page_crc32c.insert(page_crc32c.end(), next.page_crc32c.begin(), next.page_crc32c.end());
    return true;
  }
  bool operator==(const PlacedRun&) const = default;
};

// Which versions to list.
struct VersionRange {
  VersionNumber before = 0;                 // only older ones; 0: all
  absl::Time since = absl::InfinitePast();  // server time, both ends included
  absl::Time until = absl::InfiniteFuture();
};

// Whether a tag that another version has stays there or moves.
enum class TagMode : uint8_t { kKeep, kMove };

// The last comparison of the local file with a version.
struct CheckInfo {
  absl::Time time;
  VersionNumber version = 0;  // the version compared with
  uint64_t differing_bytes = 0;
  absl::Time equal_time = absl::InfinitePast();  // of the last equal comparison; past: none
};

// A file's state at one moment.
struct FileInfo {
  FileId file_id{};
  uint64_t size_bytes = 0;  // at last_cut
  uint32_t page_size_bytes = 0;
  int64_t generation = 0;
  CutNumber last_cut = 0;        // the newest cut that readers see
  CutNumber durable_cut = 0;     // the newest that survives a crash
  CutNumber applied_cut = 0;     // the one that the head on disk holds
  VersionInfo newest_version;    // version 0 when there is none
  bool last_is_version = false;  // last_cut has the bytes of newest_version
  int64_t version_count = 0;
  BarrierId last_barrier;     // the barrier that made last_cut
  BarrierId durable_barrier;  // the barrier that made durable_cut
  Origin origin;
  LocalStat local;
  uint64_t stage_bytes = 0;
  uint64_t history_bytes = 0;
  std::optional<CheckInfo> last_check;  // nullopt: never compared
  std::string owner;                    // "unix:anna"; empty: it has none
  // The source, if the file is a fork; it stays when version 1 is dropped. nullopt: it is no fork.
  std::optional<SourceVersion> forked_from = std::nullopt;
};

// The owner of a file.
struct FileOwner {
  bool is_there = false;  // false: no file has that name
  std::string owner;      // "unix:anna"; empty: unknown
  bool operator==(const FileOwner&) const = default;
};

using h5mirror::Extent;

}  // namespace h5mirror::store

#endif  // H5MIRROR_ONION_STORE_TYPES_H_
