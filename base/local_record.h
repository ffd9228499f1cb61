// The record: a client's memory of the mirror of one local file. It is `X.h5.h5m/client.json`
// beside `X.h5`, or `client-TAG.json` for each of several mirrors. The plugin writes it; the plugin
// and the admin CLI read it. Format: docs/reference/format.md, "The client's record" and "Several
// mirrors".
#ifndef H5MIRROR_BASE_LOCAL_RECORD_H_
#define H5MIRROR_BASE_LOCAL_RECORD_H_

#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace h5mirror {

// How the local file compares with its mirror, as far as the client knows.
enum class RecordState {
  // Closed cleanly and acked durable: `stat` is the file's, `cut` the server's.
  kClean,
  // A session writes the file, or its process died while it wrote.
  kOpen,
  // Closed cleanly, but the server lacks a part of the changes.
  kBehind,
  // The two sides differ, and the user must decide.
  kDiverged,
};

struct FileStat {
  uint64_t inode = 0;
  int64_t size_bytes = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  bool operator==(const FileStat&) const = default;
  // True: equal, or the same file under another name. (A rename changes the ctime alone.)
  bool EqualsButName(const FileStat& other) const {
    return inode == other.inode && size_bytes == other.size_bytes && mtime_ns == other.mtime_ns;
  }
};

// The cut of a family, split or multi file at which a member was closed; see GroupCut in
// proto/h5mirror/v1/types.proto.
struct RecordGroup {
  std::array<uint8_t, 16> id{};
  uint64_t number = 0;
  std::vector<std::string> members;
  bool operator==(const RecordGroup&) const = default;
};

struct LocalRecord {
  RecordState state = RecordState::kOpen;
  std::array<uint8_t, 16> file_id{};
  std::string server;  // as configured, e.g. "node7:7447"
  std::string name;    // the file's name under the server's root
  // The file's name on the server, if the file was renamed locally since the server heard of it;
  // empty: `name`.
  std::string renamed_from;
  int64_t cut = 0;      // the newest durable cut that the client knows of
  int64_t version = 0;  // the newest version that the client knows of
  FileStat stat;        // the local file at the last clean close
  std::optional<RecordGroup> group = std::nullopt;  // of that close
  // A barrier that was sent and never answered; seq 0: none.
  std::array<uint8_t, 16> pending_session_id{};
  uint64_t pending_seq = 0;
  // kBehind: the id of the dirty map beside the record; zeros: there is none.
  std::array<uint8_t, 16> dirty_map_id{};
  std::string detail;  // for people: why it is behind or diverged
  absl::Time since = absl::InfinitePast();
};

// The mode of the directory X.h5.h5m; its files are 0600. Other users may see whether a file of a
// known name is there. So a reader of X.h5 can tell that X.h5 is about to change.
constexpr uint32_t kBesideModeBits = 0711;

// `X.h5.h5m` beside `local_file`.
std::filesystem::path RecordDirectory(const std::filesystem::path& local_file);

// One of a file's mirrors, by the names of its record and dirty map.
struct RecordPlace {
  template <typename Path>
  requires std::convertible_to<Path, std::filesystem::path> RecordPlace(
      Path&& file, std::string server_tag = "")  // A path stands for the file's only one.
      : local_file(std::forward<Path>(file)), tag(std::move(server_tag)) {}

  std::filesystem::path local_file;
  std::string tag;  // ServerTag() (base/server_list.h); empty: the file has one mirror
};

// kNotFound: there is no record. kDataLoss: it does not parse; the message names the file, and says
// that the user may remove it, and what follows from that.
absl::StatusOr<LocalRecord> ReadLocalRecord(const RecordPlace& place);

// Makes the record, or replaces it. If the size stays the same, one write(2) overwrites the record.
// That is cheap: some file systems write back a file that is renamed over another. Else a new file
// is renamed into its place. Mode 0600, directory kBesideModeBits. Not synced: a power loss leaves
// an older record, whose `stat` no longer matches the file.
absl::Status WriteLocalRecord(const RecordPlace& place, const LocalRecord& record);

// As WriteLocalRecord(), but only if the record exists and its `since` is still `written_at`. Does
// not touch the directory, which the user may be removing just now. Removes a dirty map that the
// record no longer names, before another process can write the record. False: the record is gone
// because the file was deleted, or another process has written the record.
absl::StatusOr<bool> UpdateLocalRecord(const RecordPlace& place, const LocalRecord& record,
                                       absl::Time written_at);

struct FoundRecord {
  RecordPlace place;
  LocalRecord record;
};

// The record of the mirror on `server`, which belongs at `place`. If the file's number of mirrors
// changed from one to several, or back, the record may still be at the former place. If neither
// record is of `server`, returns the record at `place`. Errors as ReadLocalRecord().
absl::StatusOr<FoundRecord> FindRecordOf(const RecordPlace& place, std::string_view server);

// As FindRecordOf(), for a session that is about to change the file. Another program may have
// closed the file and still send its changes. That program's session does not write the record from
// now on, so the result stays true.
absl::StatusOr<FoundRecord> TakeRecordOf(const RecordPlace& place, std::string_view server);

// All records beside a file, one for each server: the record of a single mirror first, then ordered
// by server. If a client was killed while it moved a record, there are two; the newer one is
// returned. kDataLoss: one does not parse.
absl::StatusOr<std::vector<FoundRecord>> FindLocalRecords(const std::filesystem::path& local_file);

// For a file that was renamed to the name of `place`: its record, as by FindRecordOf(), and the
// record's place. That place is beside another name in the same directory. The file of that name is
// gone, and had the same `stat` but for the ctime. Looks at no more than some 100,000 names.
// kNotFound: there is none.
absl::StatusOr<FoundRecord> FindFormerRecord(const RecordPlace& place, std::string_view server,
                                             const FileStat& stat);

// Removes a void record and its dirty map, and then their directory if it is empty.
void RemoveLocalRecord(const RecordPlace& place);

// The record's own file.
std::filesystem::path RecordPath(const RecordPlace& place);

// stat(2) of a file. Errors: as ErrnoToStatus().
absl::StatusOr<FileStat> StatFile(const std::filesystem::path& path);
absl::StatusOr<FileStat> StatDescriptor(int fd);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_LOCAL_RECORD_H_
