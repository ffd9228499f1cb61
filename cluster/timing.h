// The times of the protocol (docs/design/049-cells.md), in one place since they depend on each
// other.
#ifndef H5MIRROR_CLUSTER_TIMING_H_
#define H5MIRROR_CLUSTER_TIMING_H_

#include "absl/time/time.h"

namespace h5mirror::cluster {

struct Timing {
  // Between two beats, and between two looks at the registry.
  absl::Duration beat_every = absl::Seconds(1);
  // From the moment at which a beat was sent: for so long its server answers.
  absl::Duration valid_for = absl::Seconds(4);
  // Another server is silent after so many own beats in a row, and so long by the own clock. Clocks
  // whose rates differ by less than silent_for / valid_for - 1 = 25 % agree that an owner has
  // stopped answering before it is given up.
  int silent_beats = 5;
  absl::Duration silent_for = absl::Seconds(5);
  // A server that did not give the dead one up itself leaves the fencing to the one that did for so
  // long: silent_for and a beat, as that one waits for silent_for where the dead one was not
  // silent.
  absl::Duration fence_patience = absl::Seconds(6);
  // Each place in the order of those that may claim a cell waits so much longer.
  absl::Duration claim_patience = absl::Seconds(2);
  // A server that could not open a cell leaves it to others for so long.
  absl::Duration reopen_after = absl::Seconds(10);
};

}  // namespace h5mirror::cluster

#endif  // H5MIRROR_CLUSTER_TIMING_H_
