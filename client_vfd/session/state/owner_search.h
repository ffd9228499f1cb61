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
  // What a server has told.
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
  // The same of one that had not, or is in doubt. Of one that had not it doubles with each stream
  // that was left before any was taken: nothing tells then whether the next server is the same one
  // by another name, and an opening that is merely slow must end at last.
  static constexpr absl::Duration kShortAfter = absl::Milliseconds(300);
  // A question is over after it.
  static constexpr absl::Duration kAnswerMax = absl::Seconds(1);
  // Between two questions, after kSame or kRefused, and after kNobody. After kSilent it doubles
  // with each that follows another, from kNobodyAgain: the server may be busy with the connections
  // of others. A process adds its jitter, of up to kJitterMax.
  static constexpr absl::Duration kSameAgain = absl::Seconds(1);
  static constexpr absl::Duration kNobodyAgain = absl::Milliseconds(200);
  static constexpr absl::Duration kSilentAgainMax = absl::Seconds(2);
  // After so many kRefused nothing more is asked for this stream: asking again changes nothing, and
  // a server of the list that is set up badly does not hide the others.
  static constexpr int kRefusalsMax = 4;
  static constexpr absl::Duration kJitterMax = absl::Milliseconds(100);

  explicit OwnerSearch(absl::Duration jitter) : jitter_(jitter) {}

  // A stream begins: what was asked for another one counts no more.
  void Begin();
  // The stream's server has answered.
  void OnAnswer(absl::Time now) { since_ = now; }
  // It has taken the stream.
  void OnOpened() { short_after_ = kShortAfter; }
  // The stream is left for another server.
  void OnLeft();
  // What the stream waits for now. To be told often: a wait begins when it is told first.
  void Look(Wait wait, absl::Time now);
  // A question is to be asked.
  bool IsDue(absl::Time now) const;
  // It is. Returns its number.
  uint64_t Ask();
  // The question of this number is answered. False: it counts no more.
  bool Take(uint64_t number);
  // What the question told that was taken.
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
// rounds. In a round each server of the list is asked once. 300 sessions made 1,300 attempts a
// second at two servers so, of 65 us of CPU each, for as long as their files had no server. Few
// takeovers last longer than kHurryFor: then the rounds become rarer.
//
// Pure, not thread-safe. Times are passed in and must not go back.
class ServerRounds {
 public:
  // From one round to the next. A process adds its jitter.
  static constexpr absl::Duration kEvery = absl::Milliseconds(200);
  // How long after the loss it is that.
  static constexpr absl::Duration kHurryFor = absl::Seconds(30);
  // Then it doubles with each round, up to this.
  static constexpr absl::Duration kEveryMax = absl::Seconds(2);
  // A stream that was there for so long was none of the same loss, even if nothing was to be acked.
  static constexpr absl::Duration kHeldFor = absl::Seconds(10);
  // Attempts of a round, however long the list is.
  static constexpr size_t kAttemptsMax = 4;

  explicit ServerRounds(absl::Duration jitter) : jitter_(jitter) {}

  // A server has taken the stream. It may lose it again at once.
  void OnOpened(absl::Time now) { opened_at_ = now; }
  // It has acked something: what is lost next is another loss.
  void OnAck() { *this = ServerRounds(jitter_); }
  // The stream was lost, or an attempt has failed, at `now`; the list has `servers`. When the next
  // attempt may begin.
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
