// How a mirror stands to the program's file, and whether program and user were told.
//
//   kConnecting --OnOpened--> kMirroring --GoBehind--> kBehind --OnOpened--> kMirroring
//        |                         |                      |
//        +--------GoBehind---------+----------------------+----> kBehind
//        +--------Diverge----------+----------------------+----> kDiverged: nothing is collected
//        +--------EndClean---------+----------------------+----> kClean: closed, and level
//
// EndBehind() ends a session whose mirror lacks bytes of the closed file.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_STANDING_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_STANDING_H_

#include <string>

#include "absl/time/time.h"
#include "client_vfd/api/session_api.h"

namespace h5mirror::vfd {

// Pure, not thread-safe. Copyable: the next session of a file begins with the standing of this one.
class Standing {
 public:
  enum class Phase { kConnecting, kMirroring, kBehind, kDiverged, kClean };
  // Ordered: each audience hears everything that the ones before it hear.
  enum class Audience { kNobody, kProgram, kUser };

  // The server has taken the file: an outage is over.
  void OnOpened();
  // From `now` on the mirror lacks bytes; `detail` says why. Returns the audience to tell: the
  // program the first time, the user once in an outage, and none beyond `most`.
  Audience GoBehind(std::string detail, Audience most, absl::Time now);
  void Diverge(std::string detail);
  void EndClean() { phase_ = Phase::kClean; }
  void EndBehind() { phase_ = Phase::kBehind; }
  void EndBehind(std::string detail);
  // Sets the detail, if there is none yet.
  void Explain(const std::string& detail);

  Phase phase() const { return phase_; }
  bool is_connecting() const { return phase_ == Phase::kConnecting; }
  bool is_mirroring() const { return phase_ == Phase::kMirroring; }
  bool is_behind() const { return phase_ == Phase::kBehind; }
  bool is_diverged() const { return phase_ == Phase::kDiverged; }
  // The state that others are told. `resyncs`: missing bytes are being sent, so kMirroring is told
  // as RESYNCING.
  H5mState Told(bool resyncs) const;
  // The trouble, for people; empty: none.
  const std::string& detail() const { return detail_; }
  // The time since which the mirror is behind; past: it is not behind, or only since the end.
  absl::Time behind_since() const { return behind_since_; }
  // The user knows of the outage.
  bool user_knows() const { return user_knows_; }

 private:
  Phase phase_ = Phase::kConnecting;
  std::string detail_;
  absl::Time behind_since_ = absl::InfinitePast();
  bool user_knows_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_STANDING_H_
