// When a stream is given up. The program's deadline is another one: a call that has waited
// long enough goes on, and its stream lives until the server's silence is longer. A disk that takes
// two seconds to sync is no outage. Nor is a link that is slower than the program.
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_STREAM_CLOCK_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_STREAM_CLOCK_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "client_vfd/session/state/pacing.h"

namespace h5mirror::vfd {

// Pure, not thread-safe. Times are passed in and must not go back.
class StreamClock {
 public:
  // A stream is given up when the server owes an answer for this long. The limit is higher if the
  // program's timeout is higher, or if the bytes in the buffers need longer.
  static constexpr absl::Duration kHungAfter = absl::Seconds(5);

  StreamClock(absl::Duration timeout, uint64_t frame_bytes_max)
      : timeout_(timeout), frame_size_(frame_bytes_max) {}

  // A stream begins: it owes no answer yet.
  void Begin(absl::Time now);
  void OnOpened(absl::Duration lease_ttl) { lease_ttl_ = lease_ttl; }
  void OnAnswer(absl::Time now) { Begin(now); }
  // A frame was handed to the stream, and the stream could take the next one.
  void OnSent(absl::Time now) { sent_time_ = now; }
  void OnTaken(absl::Time now);
  // Restarts the time: this side is waiting, or another session will take over.
  void Excuse(absl::Time now) { flow_time_ = now; }
  // The program stops waiting for an answer that is owed since `since`.
  void OweSince(absl::Time since) { owed_since_ = std::min(owed_since_, since); }
  // The stream is given up. `is_taking`: a frame is in flight; its time is used to estimate the
  // link's rate.
  void OnHung(absl::Time now, bool is_taking);

  absl::Duration HungAfter() const;
  // True: data flowed lately, or the answer is owed only since `since`, a short time ago.
  bool MayGoOn(absl::Time now, absl::Time since) const;
  // True: the server owes an answer for too long, since `since` or since OweSince().
  bool IsHung(absl::Time now, absl::Time since = absl::InfinitePast()) const;
  bool KeepAliveIsDue(absl::Time now) const { return now - sent_time_ > lease_ttl_ / 3; }

  // The last time at which the stream began, took a frame or brought an answer.
  absl::Time flow_time() const { return flow_time_; }
  absl::Time owed_since() const { return owed_since_; }  // future: nothing is owed
  uint64_t frame_bytes() const { return frame_size_.bytes(); }

 private:
  const absl::Duration timeout_;
  FrameSize frame_size_;
  absl::Time flow_time_ = absl::InfinitePast();
  absl::Time sent_time_ = absl::InfinitePast();
  absl::Time owed_since_ = absl::InfiniteFuture();
  absl::Duration lease_ttl_ = absl::InfiniteDuration();
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_STREAM_CLOCK_H_
