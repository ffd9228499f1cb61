// The claim of a client about its local file at the attach: docs/design/020-which-side-is-right.md.
// Pure.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_RELATION_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_RELATION_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/dirty_map.h"
#include "base/hex.h"
#include "base/local_record.h"

namespace h5mirror::vfd {

enum class Claim {
  kContinue,
  kCreate,
  kUpload,
  // With mode=remote: a new generation, in the place of any file there.
  kReplace,
  // With mode=remote: changes of the server's file as it was at base_cut.
  kChange
};

struct Relation {
  Claim claim = Claim::kUpload;
  std::string file_id;  // 16 bytes, or empty
  // For kContinue and kChange. -1: the file does not continue a known cut; the answer is DIVERGED.
  int64_t base_cut = 0;
  // Instead of base_cut: the barrier that was sent and never answered.
  Bytes16 base_session{};
  uint64_t base_seq = 0;
  // For kContinue: the file's name on the server, if the file was renamed since; else empty.
  std::string renamed_from;
  // For kContinue with a base_cut of -1: the cut that was level with the local file on a server of
  // another address, which may be this server; 0: none. `moved_stat`: the file's stat then.
  int64_t moved_cut = 0;
  FileStat moved_stat;
};

struct LocalFacts {
  bool created = false;  // by this open, or emptied by it
  FileStat stat_at_open;
  std::string server;
  std::string name;
};

// The state of a session when it begins its next stream.
struct SessionProgress {
  uint64_t last_seq = 0;  // of the barriers sent; 0: none
  // The server has taken an earlier stream of the session.
  bool ever_opened = false;
  // The cut that the changes are relative to; 0: none, the changes are the whole file.
  int64_t base_cut = 0;
  // The changes hold those of a predecessor, which must be sent again.
  bool sends_inherited = false;
  // For kReplace: the server has lost the new generation, and has the old one.
  bool begins_again = false;
};

// The claim in the first message of a stream.
struct StreamClaim {
  // RESUME; else the intent of the relation.
  bool resume = false;
  // For RESUME and CONTINUE. RESUME from 0 begins the session's generation again.
  int64_t base_cut = 0;
  // True: writes and barriers may follow before the answer. Never where the answer decides what
  // they mean.
  bool may_send_early = false;
};

// The base cut of a session that has had no answer yet. Only kContinue and kChange have one. The
// cut in the record of a file that is created again is another generation's: a resume from there
// would mix the two.
int64_t FirstBase(const Relation& relation);

StreamClaim StreamClaimOf(const Relation& relation, const SessionProgress& progress);

// `record`: that of the file, or of the file that it was before it was renamed; unset: none.
Relation RelationOf(const LocalFacts& facts, const std::optional<LocalRecord>& record);

// The relation of the file at its last mirrored close, if a program without the driver has changed
// it since. A base_cut of -1: only the record's dirty map knows the cut. Unset: the file was not
// changed, or its former relation is unknown.
std::optional<Relation> RelationOfOutsideChange(const LocalFacts& facts, const LocalRecord& record);

// As RelationOf(), for a session that takes up a dirty map. `by_record`: the result of
// RelationOf(). Not for a map that resumes a session.
Relation RelationOfMap(const DirtyMap& map, const Relation& by_record);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_RELATION_H_
