// The report to the server about a mirror that lacks bytes: how many, since when, and how far a
// resync has come. The server tells its readers.
//
//   kLevel --BeginResync--> kResyncing --OnDurable of its last barrier--> kLevel
//                               |
//                               +--StopResync: the stream is lost--> kLevel
#ifndef H5MIRROR_CLIENT_VFD_SESSION_STATE_PROGRESS_REPORT_H_
#define H5MIRROR_CLIENT_VFD_SESSION_STATE_PROGRESS_REPORT_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "client_vfd/api/session_api.h"

namespace h5mirror::vfd {

// Pure, not thread-safe.
class ProgressReport {
 public:
  enum class Phase { kLevel, kResyncing };

  struct Resync {
    uint64_t total_bytes = 0;
    uint64_t sent_bytes = 0;  // at most total_bytes
  };
  // One report.
  struct Report {
    absl::Time since;                         // of the resync, or of the stream
    std::optional<absl::Time> pending_since;  // unset: everything is durable
    std::optional<Resync> resync;             // unset: none is under way
  };

  // The server has taken a stream: it knows nothing of what was reported before.
  void OnOpened(absl::Time now);
  // A stream is resumed, and the server lacks `missing_bytes`; 0: nothing. These bytes are in the
  // cuts that are closed already, or in the next one. `last_seq`: of the barriers sent.
  void BeginResync(uint64_t missing_bytes, uint64_t last_seq, uint64_t closed_cuts, absl::Time now);
  void StopResync() { resync_seq_ = 0; }
  void Sent(uint64_t bytes) { resync_.sent_bytes += bytes; }
  // All barriers up to `seq` are durable. True: with them the resync is over.
  bool OnDurable(uint64_t seq);
  // `is_pending`: bytes are missing, or are not durable yet.
  void NotePending(bool is_pending, absl::Time now);

  Phase phase() const { return resync_seq_ != 0 ? Phase::kResyncing : Phase::kLevel; }
  bool resyncs() const { return phase() == Phase::kResyncing; }
  // `told`: the state that others are told. A report is due when it changes, each second while
  // bytes are missing, and once when none is missing any more.
  bool IsDue(H5mState told, absl::Time now) const;
  // The report that is due now.
  Report Take(H5mState told, absl::Time now);

 private:
  bool lags() const { return resyncs() || pending_since_ != absl::InfiniteFuture(); }

  // The barrier that ends the resync; 0: there is no resync.
  uint64_t resync_seq_ = 0;
  Resync resync_;  // here sent_bytes may exceed total_bytes
  absl::Time resync_since_ = absl::InfinitePast();
  absl::Time opened_time_ = absl::InfinitePast();
  absl::Time pending_since_ = absl::InfiniteFuture();  // future: nothing is
  // The last report on this stream.
  H5mState reported_state_ = H5M_STATE_OFF;
  absl::Time reported_time_ = absl::InfinitePast();
  bool reported_lag_ = false;
};

}  // namespace h5mirror::vfd

#endif  // H5MIRROR_CLIENT_VFD_SESSION_STATE_PROGRESS_REPORT_H_
