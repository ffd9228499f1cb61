// What a client may claim about its local file at the attach;
// docs/design/020-which-side-is-right.md. Pure.
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
  // mode=remote: a new generation in the place of whatever there is,
  kReplace,
  // and changes of the server's own file as it was at base_cut.
  kChange
};

struct Relation {
  Claim claim = Claim::kUpload;
  std::string file_id;  // 16 bytes, or empty
  // For kContinue and kChange. -1: the local file is known to differ; the server answers DIVERGED.
  int64_t base_cut = 0;
  // Instead of base_cut: the barrier that was sent and never answered.
  Bytes16 base_session{};
  uint64_t base_seq = 0;
  // For kContinue: the name that the server has it under, if it is not that of the file any more.
  std::string renamed_from;
  // For kContinue with a base_cut of -1: the cut that was level with the local file on a server of
  // another address, which may be this one; 0: none. `moved_stat`: the file's at that time.
  int64_t moved_cut = 0;
  FileStat moved_stat;
};

struct LocalFacts {
  bool created = false;  // by this open, or emptied by it
  FileStat stat_at_open;
  std::string server;
  std::string name;
};

// How far a session has come when it begins its next stream.
struct SessionProgress {
  uint64_t last_seq = 0;  // of the barriers sent; 0: none
  // The server has answered an open of it, and taken it.
  bool ever_opened = false;
  // The cut that the dirty map is the difference to; 0: to nothing, it holds the whole file.
  int64_t base_cut = 0;
  // The dirty map holds a predecessor's changes too, and they are to be sent again.
  bool sends_inherited = false;
  // For kReplace: the server has lost what it had of the new generation, and has the old one.
  bool begins_again = false;
};

// What the first message of a stream claims.
struct StreamClaim {
  // RESUME; else the intent of the relation.
  bool resume = false;
  // For RESUME and CONTINUE. RESUME from 0 begins the session's generation again.
  int64_t base_cut = 0;
  // Whether writes and barriers may follow before the answer. Never where a lost answer would leave
  // open what the server made of them.
  bool may_send_early = false;
};

// The base of a session that has had no answer yet: only what goes on from a cut has one. What the
// record says of a file that is created again is another generation's cut: a resume from there
// would mix the two.
int64_t FirstBase(const Relation& relation);

StreamClaim StreamClaimOf(const Relation& relation, const SessionProgress& progress);

// `record`: what was remembered of the file's mirror, if anything, or of the one that it was before
// it was renamed.
Relation RelationOf(const LocalFacts& facts, const std::optional<LocalRecord>& record);

// The relation that the file had at its last mirrored close, where it was changed since by a
// program without the driver; a base_cut of -1 is only known to the record's dirty map. Unset: it
// was not, or it cannot be known what it was then.
std::optional<Relation> RelationOfOutsideChange(const LocalFacts& facts, const LocalRecord& record);

// As RelationOf() where a dirty map is taken up. `by_record`: what RelationOf() says. Of a map that
// resumes a session the relation is not asked: the session does.
Relation RelationOfMap(const DirtyMap& map, const Relation& by_record);

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_RELATION_H_
