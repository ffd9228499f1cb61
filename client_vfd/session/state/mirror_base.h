// The base that a session's changes start from, and the sessions that made the changes.
//
// The base is a cut that the server will not lose. Without one it is 0, and the changes are the
// whole file. An open may bring changes of earlier sessions. They go along until a cut of this
// session is durable:
//
//   kOwn --------Follow---------> kFollows -----SendAgain-----> kFollowsAgain
//     |                              |                               |
//     |   their cut is durable:      v OnTaken                       v OnTaken
//     |                            kOwn                            kSends
//     +--TakeUp, Inherit--> kSends
//                                   each --OnDurable--> kOwn
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_MIRROR_BASE_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_MIRROR_BASE_H_

#include <cstdint>

#include "base/dirty_map.h"
#include "base/hex.h"
#include "client_vfd/session/state/relation.h"

namespace h5mirror::vfd {

// Pure, not thread-safe.
class MirrorBase {
 public:
  enum class Heritage {
    kOwn,           // the changes are this session's
    kFollows,       // earlier changes are on the server, in a cut that may yet be lost
    kFollowsAgain,  // the same, but sent again, because this session's stream was lost
    kSends          // earlier changes never came across, and are sent
  };

  // The first claim to the server.
  void Claim(Relation relation);
  // Sets the newest durable cut and its version, from the record.
  void SetLevel(int64_t cut, int64_t version);
  // A dirty map beside the file names the bytes that the server lacks. The claim becomes that of
  // the map's session.
  void TakeUp(const DirtyMap& map);
  // Goes on from the last cut of `session`. The changes since `base_cut` stay with this session,
  // because the server may lose that cut. `cut_seen`: the newest visible one.
  void Follow(const Bytes16& session, int64_t base_cut, int64_t cut_seen);
  // The session before has handed over the changes of `from` sessions, as `heritage` says.
  void Inherit(Relation relation, int64_t base_cut, int64_t cut_seen, int from, Heritage heritage);
  // Names the session before this one, whose last cut may be the server's newest. No changes are
  // inherited.
  void SetPredecessor(const Bytes16& session) { followed_session_ = session; }

  // A stream is lost: its changes are sent again.
  void SendAgain();
  // The server knows nothing of the file under this name: this session makes it.
  void BeginAsNewFile();
  // For kReplace: the server has lost the generation that was begun, which is sent again.
  void BeginAgain() { begins_again_ = true; }
  // True: the server has lost all of the generation that was begun. Its newest cut, `last_cut`, is
  // that of the generation before.
  bool HasLostGeneration(int64_t last_cut) const;

  // The server has taken a stream.
  void OnOpened() { begins_again_ = false; }
  // The server has nothing of the file.
  void OnNew();
  // The server has the claimed cut, `last_cut`. True: the changes of earlier sessions cannot be
  // lost now.
  bool OnTaken(int64_t last_cut, int64_t durable_cut);
  // The server has the changes of this session up to the cut `durable_cut`.
  void OnResumed(int64_t durable_cut) { base_cut_ = cut_ = durable_cut; }
  void OnVisible(int64_t cut);
  // `version`: the version that the cut became; 0: none.
  void OnDurable(int64_t cut, int64_t version);
  // The server has the file under its new name.
  void ForgetRename() { relation_.renamed_from.clear(); }

  // The claim of the next stream.
  StreamClaim NextClaim(uint64_t last_seq, bool ever_opened) const;
  // The claim that NextClaim() would give if the newest stream were lost now.
  StreamClaim ClaimIfLost(uint64_t last_seq, bool ever_opened) const;
  // The server has exactly the base, even if the changes of earlier sessions are lost.
  bool IsExact() const { return !took_up_map_ && !follows_cut() && relation_.base_seq == 0; }

  const Relation& relation() const { return relation_; }
  int64_t base_cut() const { return base_cut_; }
  int64_t cut() const { return cut_; }            // the newest durable one
  int64_t cut_seen() const { return cut_seen_; }  // the newest visible one
  int64_t version() const { return version_; }
  const Bytes16& followed_session() const { return followed_session_; }  // zeros: none
  Heritage heritage() const { return heritage_; }
  bool follows_cut() const {
    return heritage_ == Heritage::kFollows || heritage_ == Heritage::kFollowsAgain;
  }
  bool sends_inherited() const {
    return heritage_ == Heritage::kSends || heritage_ == Heritage::kFollowsAgain;
  }
  // How many sessions' changes came with the open, until a cut of this session is durable.
  int inherited_from() const { return inherited_from_; }
  // A dirty map was taken up, and is not durable yet.
  bool took_up_map() const { return took_up_map_; }

 private:
  Relation relation_;
  int64_t base_cut_ = 0;
  int64_t cut_ = 0;
  int64_t cut_seen_ = 0;
  int64_t version_ = 0;
  Bytes16 followed_session_{};
  Heritage heritage_ = Heritage::kOwn;
  int inherited_from_ = 0;
  bool took_up_map_ = false;
  bool begins_again_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_MIRROR_BASE_H_
