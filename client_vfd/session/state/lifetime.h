// How far a session has come with its life, for threads that do not hold its lock.
//
//   open --Release: the program has closed it--> released --Finish--> done --its stream ends-->
//   gone
//
// And its follower, the next session of the same file in this program:
//
//   kNone --OnReopened--> kWaits --TakeOver--> kHasTakenOver: this session is superseded
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_LIFETIME_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_LIFETIME_H_

#include <atomic>

namespace h5mirror::vfd {

// Thread-safe; written under the session's lock, or by the sender thread.
class Lifetime {
 public:
  enum class Follower {
    kNone,
    kWaits,        // for a moment to be handed over to
    kHasTakenOver  // the work that this one has to finish
  };

  void Release() { released_ = true; }
  // Also called before the program has closed the file, if another program holds it.
  void Finish() { done_ = true; }
  void SetStreaming(bool streaming) { streaming_ = streaming; }
  void OnReopened() {
    if (!has_follower()) follower_ = Follower::kWaits;
  }
  void TakeOver() { follower_ = Follower::kHasTakenOver; }
  // This process talks to no server any more.
  void Abandon() { abandoned_ = true; }

  bool released() const { return released_; }
  bool done() const { return done_; }
  bool streaming() const { return streaming_; }
  bool gone() const { return done_ && !streaming_; }
  bool abandoned() const { return abandoned_; }
  bool has_follower() const { return follower_ != Follower::kNone; }
  bool superseded() const { return follower_ == Follower::kHasTakenOver; }

 private:
  std::atomic<bool> released_{false};
  std::atomic<bool> done_{false};
  std::atomic<bool> streaming_{false};
  std::atomic<bool> abandoned_{false};
  std::atomic<Follower> follower_{Follower::kNone};
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_LIFETIME_H_
