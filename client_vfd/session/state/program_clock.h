// How long the program's calls wait for the server.
//
//   waiting --the answer--------------------------------> kReached
//      |-----no sign of life for Patience()-------------> kSilent
//      |-----signs, but the rest comes too late---------> kTooSlow
//
// A call goes on waiting for a server that gives signs of life, if the bytes that are left will be
// sent in time. For that it assumes that their rate stays as it was. A program that chose to wait
// for its server (`outage_wait`) gives up only at silence.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_PROGRAM_CLOCK_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_PROGRAM_CLOCK_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace h5mirror::vfd {

enum class Waited {
  kReached,
  kSilent,  // nothing happened for Patience()
  kTooSlow  // something did, but it takes too long
};

// Pure, not thread-safe. Times are passed in and must not go back.
class ProgramClock {
 public:
  struct Limits {
    // The longest that one of the program's calls waits.
    absl::Duration timeout;
    // How long a close may go on beyond that, while data flows.
    absl::Duration linger;
    // How long the program's barriers wait for a server that is away; 0: they do not.
    absl::Duration outage_wait;
  };

  ProgramClock(const Limits& limits, absl::Time now)
      : limits_(limits), begin_time_(now), progress_time_(now) {}

  // `is_suspect`: the server did not answer another session just now.
  absl::Duration Patience(bool is_suspect) const;
  // The program would rather wait than go on unmirrored.
  bool rides_out() const { return limits_.outage_wait > absl::ZeroDuration(); }

  // Something that the program waits for has come nearer.
  void Progress(absl::Time now) { progress_time_ = now; }
  // From here on the server's silence counts. `left_bytes`: still to be sent.
  void BeginWait(absl::Time now, uint64_t left_bytes);
  // From here on the close's deadline counts.
  void BeginClose(absl::Time now) { close_time_ = now; }
  // All bytes of the close are sent. If that took longer than `patience`, the close's deadline
  // counts from here, so that the server has time to make them durable.
  void OnHandedOver(absl::Time now, absl::Duration patience);

  absl::Time begin_time() const { return begin_time_; }
  absl::Time progress_time() const { return progress_time_; }
  absl::Time wait_time() const { return wait_time_; }  // of the last BeginWait()
  uint64_t wait_bytes() const { return wait_bytes_; }  // that were to be sent then
  absl::Time close_time() const { return close_time_; }
  absl::Time CloseEnds(absl::Duration patience) const {
    return close_time_ + std::max(patience, limits_.linger);
  }
  // The moment at which a call gives up waiting for the end of an outage that began at
  // `behind_since`. The silence may have been found late, after a wait for another mirror. Then the
  // outage began earlier.
  absl::Time OutageEnds(absl::Time behind_since, absl::Duration patience) const {
    return std::min(behind_since, progress_time_ + patience) + limits_.outage_wait;
  }

 private:
  const Limits limits_;
  const absl::Time begin_time_;
  absl::Time progress_time_;
  absl::Time wait_time_ = absl::InfinitePast();
  uint64_t wait_bytes_ = 0;
  absl::Time close_time_;
};

// One wait of a call, made when it begins. Pure, not thread-safe.
class Wait {
 public:
  struct Look {
    std::optional<Waited> ended;  // never kReached: the caller sees that
    absl::Time again;             // look again then, unless it is reached before
  };

  // `clock` must outlive it. `since`: when the program's call began. `linger`: how long it may go
  // on beyond `patience`.
  Wait(const ProgramClock& clock, absl::Time since, absl::Duration patience, absl::Duration linger);

  // `left_bytes` counts the bytes that are still to be sent; it is called now and then.
  Look At(absl::Time now, absl::FunctionRef<uint64_t()> left_bytes);

 private:
  const ProgramClock& clock_;
  const absl::Duration patience_;
  const absl::Time latest_;
  absl::Time checked_;   // when the rate was last looked at
  uint64_t left_bytes_;  // at that time
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_PROGRAM_CLOCK_H_
