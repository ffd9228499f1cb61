// A session's streams, one after the other: the phase of the newest, the server's answer to its
// opening, and the time at which the next one may begin.
//
//             claim may be sent on early
//          +------> kOpeningSends ----+
//   kNone -+                          +--OnOpened--> kOpen
//     ^    +------> kOpening ---------+                |
//     |                |                               |
//     +---- End, Lose, Leave --------------------------+
//
// Retries are at least kRetryEvery apart, except after Hurry(). Where no server was ever there,
// those of the timer are up to kRestMax apart (Rest).
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_LINK_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_LINK_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "client_vfd/session/state/relation.h"

namespace h5mirror::vfd {

// Pure, not thread-safe. Times are passed in.
class Link {
 public:
  enum class Phase { kNone, kOpening, kOpeningSends, kOpen };
  // The server's answer to the opening of a stream that it did not take. The answer ends the
  // stream. For all other streams kNone.
  enum class Answer {
    kNone,
    kBusy,         // another writer holds the file
    kLostBase,     // it has lost the cut that the session follows
    kUnknownFile,  // it does not know the file under its former name
  };

  // Between two attempts to reach a server.
  static constexpr absl::Duration kRetryEvery = absl::Milliseconds(500);
  // The longest wait between attempts at a server without room for this session. The wait doubles
  // each time.
  static constexpr absl::Duration kFullRetryMax = absl::Seconds(5);
  // The longest wait by the timer alone, for a server that was never there. It doubles each time.
  static constexpr absl::Duration kRestMax = absl::Seconds(15);
  // The wait after a connection that failed before anything depended on it.
  static constexpr absl::Duration kFirstRetryEvery = absl::Milliseconds(100);
  // The wait at the last barrier, if the server was there before: it may just be restarting.
  static constexpr absl::Duration kFinalRetryEvery = absl::Milliseconds(200);
  static constexpr int kFinalAttemptsMax = 8;

  // A stream begins with `claim`. Returns its number, from 1.
  uint64_t Begin(const StreamClaim& claim, absl::Time now);
  void OnOpened();
  void OnBusy(std::string holder);
  void OnAnswer(Answer answer) { answer_ = answer; }
  // The server has no room for it just now, as its user has all that a limit allows, or the disk is
  // full.
  void OnFull();
  // The server ended the stream for another reason than a lack of room.
  void OnNotFull() { is_full_ = false; }
  // The server will never take this session, as it is.
  void Refuse() { is_refused_ = true; }
  // The server may take the session now, because it comes with another token.
  void TryAgain() {
    is_refused_ = false;
    Hurry();
  }
  // The stream has ended.
  void End();
  // The stream is lost, with the messages in flight.
  void Lose(absl::Time now);
  // Half-closes the stream, as before a fork. True: the stream was open, and is resumed at once.
  bool Leave();
  // Cancel() asks the sender to cancel the lost stream. The other call returns true once after
  // that.
  void Cancel() { is_cancelled_ = true; }
  bool TakeCancel();

  // The next stream may begin now, before the retry time.
  void Hurry() {
    hurries_ = true;
    EndRest();
  }
  // The next stream is wanted by nothing but the timer, and the server may be away for long.
  void Rest(absl::Time now);
  // The program has asked for a cut.
  void EndRest() { rest_end_ = absl::InfinitePast(); }
  // The program waits for the server to take the file, or does so no more.
  void SetAwaited(bool is_awaited) { is_awaited_ = is_awaited; }
  void RetryAt(absl::Time time) { retry_time_ = time; }
  // Another session has tried the same server. That counts as an attempt of this one.
  void TakeOverRetry(absl::Time retry_time);
  // Counts the attempts to send the final cut. False: no further attempt is allowed.
  bool TakeFinalAttempt() { return ++final_attempts_ <= kFinalAttemptsMax; }
  // `is_wanted`: there is something to send or to learn.
  bool MayBegin(absl::Time now, bool is_wanted) const {
    return hurries_ || (now >= retry_time_ && (is_awaited_ || (is_wanted && now >= rest_end_)));
  }
  // True: wait; the timer makes the next attempt.
  bool MustWait(absl::Time now) const { return is_none() && !hurries_ && now < retry_time_; }

  Phase phase() const { return phase_; }
  bool is_none() const { return phase_ == Phase::kNone; }
  bool is_opening() const { return phase_ == Phase::kOpening || phase_ == Phase::kOpeningSends; }
  bool is_open() const { return phase_ == Phase::kOpen; }
  bool may_send() const { return is_open() || phase_ == Phase::kOpeningSends; }
  bool is_cancelled() const { return is_cancelled_; }
  // The newest stream is a RESUME, as its first message said.
  bool resumes() const { return resumes_; }
  // A server has taken at least one stream.
  bool ever_opened() const { return ever_opened_; }
  bool is_refused() const { return is_refused_; }
  // The last stream ended as the server had no room.
  bool is_full() const { return is_full_; }
  Answer answer() const { return answer_; }
  // Of kBusy: the writer of the file, for people.
  const std::string& holder() const { return holder_; }
  // A stream ended because another writer holds the file.
  bool was_busy() const { return was_busy_; }
  absl::Time retry_time() const { return retry_time_; }

 private:
  Phase phase_ = Phase::kNone;
  uint64_t stream_count_ = 0;
  bool resumes_ = false;
  bool ever_opened_ = false;
  bool is_refused_ = false;
  bool is_full_ = false;
  absl::Duration full_retry_ = kRetryEvery;
  bool is_cancelled_ = false;
  bool was_busy_ = false;
  Answer answer_ = Answer::kNone;
  std::string holder_;
  bool hurries_ = true;  // A session connects at once.
  bool is_awaited_ = false;
  absl::Time retry_time_ = absl::InfinitePast();
  absl::Time rest_end_ = absl::InfinitePast();
  absl::Duration next_rest_ = kRetryEvery;
  int final_attempts_ = 0;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_LINK_H_
