// The times of the protocol (docs/design/049-cells.md), in one place since they depend on each
// other.
#ifndef H5MIRROR_CLUSTER_TIMING_H_
#define H5MIRROR_CLUSTER_TIMING_H_

#include "absl/time/time.h"

namespace h5mirror::cluster {

struct Timing {
  // Between two beats, and between two looks at the registry.
  absl::Duration beat_every = absl::Seconds(1);
  // A server answers for this long after it sent its last successful beat.
  absl::Duration valid_for = absl::Seconds(4);
  // Another server is silent if its beat has not changed for this many own beats in a row, and for
  // this long by the own clock. Clocks whose rates differ by less than silent_for / valid_for - 1 =
  // 25 % agree that an owner has stopped answering before it is given up.
  int silent_beats = 5;
  absl::Duration silent_for = absl::Seconds(5);
  // The server that gave a dead one up fences it. Others wait this long before they fence:
  // silent_for and a beat, because the first server waits for silent_for if the dead one was not
  // silent.
  absl::Duration fence_patience = absl::Seconds(6);
  // The extra wait of each place in the order in which servers may claim a cell.
  absl::Duration claim_patience = absl::Seconds(2);
  // A server that could not open a cell leaves it to others for this long.
  absl::Duration reopen_after = absl::Seconds(10);
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_TIMING_H_
