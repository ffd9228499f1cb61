// When a session asks other servers of its cluster whether they serve its file, while its own
// stream waits for an answer (docs/design/049-cells.md, "Finding the server").
//
// The stream stays as it is meanwhile: a slow server that still serves the file is not left. A
// question goes to one server at a time.
//
//   kNothing --something is owed--> the others --silent for long enough--> asks, again and
//      ^                               |       ^                            again
//      +-------- nothing is owed ------+       +-- an answer: the silence begins anew
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_OWNER_SEARCH_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_OWNER_SEARCH_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace h5mirror::vfd {

// Pure, not thread-safe. Times are passed in and must not go back.
class OwnerSearch {
 public:
  enum class Wait {
    kNothing,
    kOpening,  // the server has not taken the stream yet
    kAnswer,   // it has, and owes an answer, or takes no more data
    kDoubt,    // the same, and another session has found it silent
  };
  // The answer of one server.
  enum class Told {
    kSame,     // the stream's own server serves the file
    kOther,    // another one does, which is to be asked itself
    kLacks,    // one would make it anew, and the rest of the list is to be heard on that
    kNobody,   // nobody just now
    kSilent,   // it gave no answer
    kRefused,  // it tells this caller nothing of the file
  };

  // Silence of a server that had taken the stream. No successor serves its cells earlier, as it is
  // given up after 5 s (cluster/timing.h).
  static constexpr absl::Duration kSilentAfter = absl::Seconds(5);
  // The same for a server that had not taken the stream, or is in doubt. It doubles with each
  // stream that was left before any was taken. The next server may be the same one under another
  // name, so a slow opening must get enough time at last.
  static constexpr absl::Duration kShortAfter = absl::Milliseconds(300);
  // A question without an answer ends after this time.
  static constexpr absl::Duration kAnswerMax = absl::Seconds(1);
  // Between two questions, after kSame or kRefused, and after kNobody. After kSilent it doubles
  // with each that follows another, from kNobodyAgain: the server may be busy with the connections
  // of others. A process adds its jitter, of up to kJitterMax.
  static constexpr absl::Duration kSameAgain = absl::Seconds(1);
  static constexpr absl::Duration kNobodyAgain = absl::Milliseconds(200);
  static constexpr absl::Duration kSilentAgainMax = absl::Seconds(2);
  // After this many kRefused, no more questions are asked for this stream. Asking again would
  // change nothing. The limit is above 1 so that one badly configured server of the list does not
  // hide the others.
  static constexpr int kRefusalsMax = 4;
  static constexpr absl::Duration kJitterMax = absl::Milliseconds(100);

  explicit OwnerSearch(absl::Duration jitter) : jitter_(jitter) {}

  // A stream begins: questions for the former stream no longer count.
  void Begin();
  // The stream's server has answered.
  void OnAnswer(absl::Time now) { since_ = now; }
  // The server has taken the stream.
  void OnOpened() { short_after_ = kShortAfter; }
  // The stream is left for another server.
  void OnLeft();
  // `wait`: the answer that the stream waits for now. Call this often: a wait begins with the first
  // call that names it.
  void Look(Wait wait, absl::Time now);
  // True: it is time for the next question.
  bool IsDue(absl::Time now) const;
  // A question goes out. Returns its number.
  uint64_t Ask();
  // The question of this number is answered. False: it no longer counts; ignore the answer.
  bool Take(uint64_t number);
  // The answer to the question that Take() accepted.
  void OnTold(Told told, absl::Time now);

  // Counts the questions.
  size_t turn() const { return numbers_; }

 private:
  const absl::Duration jitter_;
  Wait wait_ = Wait::kNothing;
  absl::Time since_ = absl::InfinitePast();
  absl::Time next_ = absl::InfinitePast();
  absl::Duration short_after_ = kShortAfter;  // of kOpening
  absl::Duration silent_again_ = kNobodyAgain;
  int refusals_ = 0;  // for this stream
  uint64_t numbers_ = 0;
  uint64_t asked_ = 0;  // the number of the question that is under way; 0: none
};

// When the next attempt begins after one that found the file's server away: at once, then in
// rounds. In a round each server of the list is asked once. Measured: 300 sessions without a server
// for their files made 1,300 attempts a second at two servers, of 65 us of CPU each. Few takeovers
// last longer than kHurryFor: then the rounds become rarer.
//
// Pure, not thread-safe. Times are passed in and must not go back.
class ServerRounds {
 public:
  // The time from one round to the next. A process adds its jitter.
  static constexpr absl::Duration kEvery = absl::Milliseconds(200);
  // kEvery holds for this long after the loss.
  static constexpr absl::Duration kHurryFor = absl::Seconds(30);
  // After kHurryFor the time doubles with each round, up to this.
  static constexpr absl::Duration kEveryMax = absl::Seconds(2);
  // A stream that was open this long ends the loss, even if nothing was acked. A later end is a new
  // loss.
  static constexpr absl::Duration kHeldFor = absl::Seconds(10);
  // The most attempts in one round, however long the list is.
  static constexpr size_t kAttemptsMax = 4;

  explicit ServerRounds(absl::Duration jitter) : jitter_(jitter) {}

  // A server has taken the stream. The stream may be lost again at once.
  void OnOpened(absl::Time now) { opened_at_ = now; }
  // The server has acked something: a stream lost after this is a new loss.
  void OnAck() { *this = ServerRounds(jitter_); }
  // Returns the time of the next attempt, after the stream was lost or an attempt failed at `now`.
  // `servers`: the length of the list.
  absl::Time Next(size_t servers, absl::Time now);

 private:
  absl::Duration jitter_;
  absl::Duration every_ = kEvery;
  absl::Time lost_at_ = absl::InfiniteFuture();    // the first failure of this loss
  absl::Time opened_at_ = absl::InfiniteFuture();  // since the last failure
  size_t attempts_ = 0;                            // of this round that have failed
  absl::Time begun_at_ = absl::InfinitePast();
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_OWNER_SEARCH_H_
