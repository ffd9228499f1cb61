// From one open of a file to the next in another program: what the server lacks lies beside the
// file (base/dirty_map.h), and the next session sends it.
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/dirty_map.h"
#include "client_vfd/session/session.h"

namespace h5mirror::vfd {
namespace {

DirtyMap::Claim ClaimOf(Claim claim) {
  switch (claim) {
    case Claim::kContinue:
      return DirtyMap::Claim::kContinue;
    case Claim::kCreate:
      return DirtyMap::Claim::kCreate;
    case Claim::kUpload:
    case Claim::kReplace:  // (In mode=remote there are no maps.)
    case Claim::kChange:
      break;
  }
  return DirtyMap::Claim::kUpload;
}

}  // namespace

// Works as with a predecessor whose changes did not reach the server. The server knows that
// session's cuts by its id.
void Session::TakeUp(const DirtyMap& map) {
  Changes changes;
  changes.extents.AddAll(map.extents);
  changes.truncate = map.truncate;
  const Relation& relation = base_.relation();
  const bool may_be_there = relation.claim == vfd::Claim::kContinue && relation.base_seq != 0;
  if (may_be_there && map.claim == DirtyMap::Claim::kResume &&
      map.session_id == relation.base_session) {
    return FollowClose(map, std::move(changes));
  }
  base_.TakeUp(map);
  base_.SetLevel(record_.value().cut, record_.value().version);
  TakeOver(changes);
}

// Works as with a predecessor whose last cut is visible (FollowPredecessor()): asks the server for
// the cut of the unanswered close. If that cut never arrived, or is lost again, the changes are
// sent on top of the map's base cut.
void Session::FollowClose(const DirtyMap& map, Changes changes) {
  base_.Follow(map.session_id, map.base_cut, map.cut_newest);
  queue_.Inherit(std::move(changes));
}

// Unset if no map would be right: the base of the changes is unknown, not all changes were
// collected, or the file has changed since. The last case includes a newer session of this program,
// which does not read the map.
std::optional<DirtyMap> Session::MakeDirtyMap() const {
  if (config_.remote || !closing_.stat() || !succession_.is_claimed() || !collecting())
    return std::nullopt;
  if (life_.has_follower() || !FileIsAsClosed()) return std::nullopt;
  const Changes changes = queue_.Everything();
  const StreamClaim claim = base_.ClaimIfLost(queue_.last_seq(), link_.ever_opened());
  if (claim.base_cut < 0) return std::nullopt;
  DirtyMap map;
  // The same for all maps of one close: a program may use a map that is newer than the record says.
  map.id = record_.names_map() ? record_.value().dirty_map_id : host_.RandomId();
  map.file_id = record_.value().file_id;
  map.base_cut = claim.base_cut;
  map.stat = *closing_.stat();
  map.truncate = changes.truncate;
  map.extents.AddAll(changes.extents);
  if (claim.resume) {
    map.claim = DirtyMap::Claim::kResume;
    map.session_id = LastSession();
    map.cut_newest = base_.cut_seen();
  } else {
    map.claim = ClaimOf(base_.relation().claim);
    map.session_id = base_.relation().base_session;
    map.barrier_seq = base_.relation().base_seq;
  }
  return map;
}

void Session::SaveDirtyMap() {
  const std::optional<DirtyMap> map = MakeDirtyMap();
  if (!map) return;
  const absl::Status written = record_.SaveMap(*map);
  if (!written.ok() && !absl::IsNotFound(written)) {
    Notify("record",
           absl::StrCat(config_.real_path,
                        ": what the mirror lacks cannot be noted: ", written.message()),
           true);
  }
}

}  // namespace h5mirror::vfd
