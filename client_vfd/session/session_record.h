// The record of one open of a file (base/local_record.h): its content, its place, and whether
// another program has taken it over.
//
//   found here, or nowhere ------------------------------------> here: written in place
//   found at another place of the file --ForgetElsewhere-------> here
//   found beside a former name --ForgetFormerPlace: the server has the new name--> here
//
// A record is always written here. One that was found at another place is removed after that: a
// program that dies in between leaves two, of which the newer one counts.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_SESSION_RECORD_H_
#define H5MIRROR_CLIENT_VFD_SESSION_SESSION_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/dirty_map.h"
#include "base/local_record.h"
#include "client_vfd/session/state/relation.h"

namespace h5mirror::vfd {

// Not thread-safe. It reads and writes files beside the mirrored one.
class SessionRecord {
 public:
  enum class Writing {
    kMake,   // the program has the file's lock: the record is made, or replaced
    kUpdate  // it has not: a record that is there, and still this session's, is brought up to date
  };

  // The facts that a session notes.
  struct News {
    RecordState state = RecordState::kOpen;
    std::string detail;            // why it is behind or diverged
    std::optional<FileStat> stat;  // at the close; unset: the record keeps the former one
    Bytes16 session_id{};
    std::optional<uint64_t> final_seq;  // of the session's last barrier, if that was sent
    int64_t cut = 0;                    // for kClean: the durable one
    int64_t version = 0;
    absl::Time now;
    std::optional<RecordGroup> group;  // of the close, with `stat`
  };

  explicit SessionRecord(RecordPlace place) : place_(std::move(place)) {}

  // The file's record. If it has none and this open did not create it: the record beside its former
  // name, before a rename.
  std::optional<FoundRecord> Find(const LocalFacts& facts);
  // The map at the place of `found` that this record names, if the file is still as that says.
  std::optional<DirtyMap> FindMap(const FoundRecord& found, const Relation& relation,
                                  const LocalFacts& facts) const;
  // Goes on from what was known of the same file, if anything.
  void Begin(const std::optional<FoundRecord>& found, const Relation& relation,
             const LocalFacts& facts);
  // Goes on from another session's record, which lies at `place`.
  void Inherit(LocalRecord record, const RecordPlace& place);
  // The server knows nothing of a former name.
  void BeginAsNewFile();

  // True: the record is written. False, for kUpdate only: the record is gone, or is another
  // session's. Removes a dirty map that the record no longer names. Errors: as WriteLocalRecord().
  absl::StatusOr<bool> Save(const News& news, Writing writing);
  // Writes a map, which the next Save() of kBehind names. Errors: as WriteDirtyMap().
  absl::Status SaveMap(const DirtyMap& map);
  // The next Save() names no map. False: there was none.
  bool ForgetMap();
  // Call before the program changes a file that was changed outside. Notes that the file is ahead
  // of the server by `map`, as after an unanswered close. False: the record could not be written
  // and is as it was.
  bool NoteOutside(const DirtyMap& map, absl::Time now);
  void SetLevel(int64_t cut, int64_t version);
  // False: the record has this id already.
  bool SetFileId(const Bytes16& file_id);

  // Removes the record that was found at another place of the file.
  void ForgetElsewhere();
  bool is_renamed() const { return !value_.renamed_from.empty() || former_place_; }
  void ForgetRename() { value_.renamed_from.clear(); }
  void ForgetFormerPlace();
  // The record was found beside a former name. The server does not know of the rename yet.
  bool has_former_place() const { return former_place_.has_value(); }

  // True: another session has written the record since.
  bool IsAnothers() const;
  bool names_map() const { return value_.dirty_map_id != Bytes16{}; }
  const LocalRecord& value() const { return value_; }
  const RecordPlace& place() const { return place_; }

 private:
  void Fill(const News& news);

  const RecordPlace place_;
  LocalRecord value_;
  std::optional<RecordPlace> former_place_;  // of the name before
  std::optional<RecordPlace> elsewhere_;     // of the same file
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_SESSION_RECORD_H_
