// What a client remembers of the mirror of one local file: `X.h5.h5m/client.json` beside
// `X.h5`, or `client-TAG.json` for each of several mirrors. The plugin writes it, the plugin and
// the admin CLI read it. Format: docs/reference/format.md, "The client's record" and "Several
// mirrors".
#ifndef H5MIRROR_BASE_LOCAL_RECORD_H_
#define H5MIRROR_BASE_LOCAL_RECORD_H_

#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace h5mirror {

// How the local file stands to its mirror, as far as the client knows.
enum class RecordState {
  // Closed cleanly and acked durable: `stat` is the file's, `cut` the server's.
  kClean,
  // A session writes it, or did when its process died.
  kOpen,
  // Closed cleanly, but the server does not have all of it.
  kBehind,
  // The two sides differ in a way that the user must decide.
  kDiverged,
};

struct FileStat {
  uint64_t inode = 0;
  int64_t size_bytes = 0;
  int64_t mtime_ns = 0;
  int64_t ctime_ns = 0;
  bool operator==(const FileStat&) const = default;
  // Equal, or the same file under another name: renaming it changes the ctime alone.
  bool EqualsButName(const FileStat& other) const {
    return inode == other.inode && size_bytes == other.size_bytes && mtime_ns == other.mtime_ns;
  }
};

struct LocalRecord {
  RecordState state = RecordState::kOpen;
  std::array<uint8_t, 16> file_id{};
  std::string server;  // as configured, e.g. "node7:7447"
  std::string name;    // the file's name under the server's root
  // The name that the server has it under, as the file was renamed locally since it last heard
  // of it; empty: `name`.
  std::string renamed_from;
  int64_t cut = 0;      // the newest durable cut that the client knows of
  int64_t version = 0;  // the newest version that the client knows of
  FileStat stat;        // the local file at the last clean close
  // A barrier that was sent and never answered; seq 0: none.
  std::array<uint8_t, 16> pending_session_id{};
  uint64_t pending_seq = 0;
  // kBehind: the dirty map beside it that says what the server lacks; zeros: none.
  std::array<uint8_t, 16> dirty_map_id{};
  std::string detail;  // for people: why it is behind or diverged
  absl::Time since = absl::InfinitePast();
};

// Of the directory X.h5.h5m, whose files are 0600: others may ask whether a file of a known name is
// there, and so whether a change is on its way to X.h5, which they may be able to read.
constexpr uint32_t kBesideModeBits = 0711;

// `X.h5.h5m` beside `local_file`.
std::filesystem::path RecordDirectory(const std::filesystem::path& local_file);

// Which of a file's mirrors is meant, as its record and dirty map are named.
struct RecordPlace {
  template <typename Path>
  requires std::convertible_to<Path, std::filesystem::path> RecordPlace(
      Path&& file, std::string server_tag = "")  // A path stands for the file's only one.
      : local_file(std::forward<Path>(file)), tag(std::move(server_tag)) {}

  std::filesystem::path local_file;
  std::string tag;  // ServerTag() (base/server_list.h); empty: the file has one mirror
};

// kNotFound: none. kDataLoss: it does not parse; the message names it and says that
// removing it is safe and what follows from it.
absl::StatusOr<LocalRecord> ReadLocalRecord(const RecordPlace& place);

// Makes the record, or brings it up to date: with one write(2) over it where its size stays, which
// is cheap (some filesystems write a file back that is renamed over another), else by a new one
// renamed into its place. Mode 0600, directory kBesideModeBits. Not synced: a record lost with the
// machine's power leaves an older one, whose `stat` does not match the file any more.
absl::Status WriteLocalRecord(const RecordPlace& place, const LocalRecord& record);

// The same for a record that exists, and that nobody has written since it had `written_at` as its
// `since`; without touching its directory, which the user may be removing just now. A dirty map
// that it names no more is removed before anybody else writes the record. False: there is none any
// more, as the file was deleted, or it is another's by now.
absl::StatusOr<bool> UpdateLocalRecord(const RecordPlace& place, const LocalRecord& record,
                                       absl::Time written_at);

struct FoundRecord {
  RecordPlace place;
  LocalRecord record;
};

// The record of the mirror on `server` that is kept at `place` from now on. It may still lie where
// it was kept while the file had one mirror instead of several, or several instead of one. Where
// neither is of `server`, what lies at `place`. Errors as ReadLocalRecord().
absl::StatusOr<FoundRecord> FindRecordOf(const RecordPlace& place, std::string_view server);

// As FindRecordOf(), for who is about to change the file. A session of another program that has
// closed it, and is still at work on what the server lacks, leaves the record alone from then on:
// what is found stays true.
absl::StatusOr<FoundRecord> TakeRecordOf(const RecordPlace& place, std::string_view server);

// All records beside a file, one for each server: that of a file with one mirror first, then by
// server. Where a client was killed while it moved one, the newer of two. kDataLoss: one of them
// does not parse.
absl::StatusOr<std::vector<FoundRecord>> FindLocalRecords(const std::filesystem::path& local_file);

// The record, as FindRecordOf(), of a file that has become that of `place` by a rename, and where
// it lies: beside a name in the same directory, of a file that is gone and that was `stat` but for
// the ctime. Looks at no more than some 100,000 names. kNotFound.
absl::StatusOr<FoundRecord> FindFormerRecord(const RecordPlace& place, std::string_view server,
                                             const FileStat& stat);

// Removes a record and its dirty map, which are another's now, and their directory if nothing else
// is in it.
void RemoveLocalRecord(const RecordPlace& place);

// The record's own file.
std::filesystem::path RecordPath(const RecordPlace& place);

// stat(2) of a file. kNotFound and others as errno says.
absl::StatusOr<FileStat> StatFile(const std::filesystem::path& path);
absl::StatusOr<FileStat> StatDescriptor(int fd);

}  // namespace h5mirror

#endif  // H5MIRROR_BASE_LOCAL_RECORD_H_
