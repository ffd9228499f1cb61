// How a mirror stands to the program's file, and what the program and its user have heard of it.
//
//   kConnecting --OnOpened--> kMirroring --GoBehind--> kBehind --OnOpened--> kMirroring
//        |                         |                      |
//        +--------GoBehind---------+----------------------+----> kBehind
//        +--------Diverge----------+----------------------+----> kDiverged: nothing is collected
//        +--------EndClean---------+----------------------+----> kClean: closed, and level
//
// EndBehind() says at the end what GoBehind() has not: the mirror lacks what was closed.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_STANDING_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_STANDING_H_

#include <string>

#include "absl/time/time.h"
#include "client_vfd/api/session_api.h"

namespace h5mirror::vfd {

// Pure, not thread-safe. A value: the next session of a file takes over how this one stands.
class Standing {
 public:
  enum class Phase { kConnecting, kMirroring, kBehind, kDiverged, kClean };
  // Each hears what those before it hear.
  enum class Audience { kNobody, kProgram, kUser };

  // The server has taken the file: what was said of an outage is over.
  void OnOpened();
  // The mirror lacks something from `now` on, as `detail` says. Returns the audience that is to
  // hear so: the program at the first time, the user once in an outage, and none beyond `most`.
  Audience GoBehind(std::string detail, Audience most, absl::Time now);
  void Diverge(std::string detail);
  void EndClean() { phase_ = Phase::kClean; }
  void EndBehind() { phase_ = Phase::kBehind; }
  void EndBehind(std::string detail);
  // Where nothing was said so far.
  void Explain(const std::string& detail);

  Phase phase() const { return phase_; }
  bool is_connecting() const { return phase_ == Phase::kConnecting; }
  bool is_mirroring() const { return phase_ == Phase::kMirroring; }
  bool is_behind() const { return phase_ == Phase::kBehind; }
  bool is_diverged() const { return phase_ == Phase::kDiverged; }
  // As others are told of it: while something is made up for, RESYNCING is a kind of MIRRORING.
  H5mState Told(bool resyncs) const;
  // What is wrong, for people; empty: nothing is.
  const std::string& detail() const { return detail_; }
  // Since when it has been behind; past: it is not, or only since the end.
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
